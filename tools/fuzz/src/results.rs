//! Results: records, sweeps, other tools' files, live pages.

use std::path::Path;

use gpuio_report::compare::{Options, Side, compare, of_reading, of_record};
use gpuio_report::format::text::Show;
use gpuio_report::format::{FORMATS, TEXT_WIDTH, json};
use gpuio_report::recheck;
use gpuio_report::set::{Member, SET_FORMATS, Set};
use gpuio_watch::page::format::{Shown, gds_stats, json as page_json, text as page_text};
use gpuio_watch::page::read::Owner;
use gpuio_watch::page::{Direction, Key, LivePage, LivePageRoot};

use crate::is_shown;

/// A record or a journal, in every format.
pub(crate) fn record(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(record) = json::parse(text) else { return };
    let back = json::parse(&json::render(&record));
    assert!(back.is_ok_and(|back| back == record), "what is saved reads back");
    let recheck = recheck(&record);
    for format in FORMATS {
        let shown = (format.render)(
            &record,
            TEXT_WIDTH,
            Show { evidence: true, per_rank: true, recheck: Some(&recheck), screen: false },
        );
        if format.name != "json" {
            is_shown(&shown);
        }
    }
    let runs = of_record::runs(&record, "r", &[]);
    let side = || Side { name: "r".to_owned(), runs: runs.clone(), ..Side::default() };
    compared(&[side(), side()]);
    let set = Set { members: vec![Member::new("r", record)], ..Set::default() };
    for format in SET_FORMATS {
        let shown = (format.render)(&set);
        if !matches!(format.name, "html" | "fio-json") {
            is_shown(&shown);
        }
    }
}

/// `sweep.json`.
pub(crate) fn sweep(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = |text: &str| serde_json::from_str::<gpuio_record::Sweep>(text);
    if let Ok(sweep) = read(text) {
        let saved = serde_json::to_string(&sweep).unwrap_or_default();
        assert!(read(&saved).is_ok_and(|back| back == sweep));
    }
}

/// Results of gdsio, fio and elbencho.
pub(crate) fn foreign(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match gpuio_report::foreign::read(&text) {
        Ok((_, output)) => {
            let runs: Vec<_> = output
                .readings
                .iter()
                .map(|reading| of_reading::run(reading, "f", &text))
                .collect();
            let side = || Side { name: "f".to_owned(), runs: runs.clone(), ..Side::default() };
            compared(&[side(), side()]);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Texts with commands and results, held against each other: statements lie inside the text.
pub(crate) fn post(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let posts = [gpuio_report::post::read("post", &text)];
    let statements = gpuio_report::post::hold(&posts, &[]);
    let last = text.lines().count();
    assert!(statements.iter().flat_map(|one| &one.lines).all(|line| (1..=last).contains(line)));
    if let Some(section) = gpuio_report::post::section(&posts, &statements) {
        let mut page = gpuio_base::document::Document::new("post");
        page.push(section);
        is_shown(&page.terminal(100));
    }
}

fn compared(sides: &[Side]) {
    let options = Options { despite: vec!["all".to_owned()], ..Options::default() };
    let comparison = compare(sides, &options);
    for format in gpuio_base::document::FORMATS {
        let text = gpuio_report::compare::render(&comparison, format, 100);
        match format.name {
            "html" => assert!(!text.contains("<script")),
            "json" => assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok()),
            _ => is_shown(&text),
        }
    }
}

/// A live page's bytes.
pub(crate) fn page(data: &[u8]) {
    let Ok(snapshot) = gpuio_watch::page::read::parse(data) else { return };
    let owner = Owner::Elsewhere;
    let shown = Shown {
        snapshot: &snapshot,
        owner: &owner,
        user: "root",
        command: None,
        since: "now",
        earlier: None,
    };
    is_shown(&page_text::page(&shown, 3).unbroken());
    is_shown(&page_text::list(&[shown]).unbroken());
    is_shown(&gds_stats::text(&snapshot, 3, &[]));
    let _ = page_json::value(&shown, 3).to_string();
}

pub(crate) fn a_page(folder: &Path) -> std::io::Result<Vec<u8>> {
    let other = |error: gpuio_watch::page::LivePageError| std::io::Error::other(error.to_string());
    let place = folder.join("place");
    std::fs::create_dir_all(&place)?;
    let page = LivePage::create(&LivePageRoot::at(&place), 1, "fuzz", 1_763_782_123_000_000_000);
    let page = page.map_err(other)?;
    let key = Key {
        gpu: Some(0),
        pci: "0000:01:00.0".to_owned(),
        path: "staged".to_owned(),
        engine: "io_uring".to_owned(),
        registrations_unknown: false,
    };
    if let Some(lane) = page.worker_slot(&key) {
        lane.add(Direction::Read, 4096, 1000, false);
        lane.add(Direction::Write, 65_536, 9000, true);
    }
    std::fs::read(page.path())
}

/// A trace of calls, and the script of its replay: every step lies in its file, and an error in the
/// trace.
pub(crate) fn trace(data: &[u8]) {
    use gpuio_base::trace::read::Place;
    use gpuio_job::workload::replay::{Script, missing};
    use gpuio_record::ReplayOrder;
    let trace = match gpuio_base::trace::read(data) {
        Ok(trace) => trace,
        Err(error) => {
            let lines = data.iter().filter(|byte| **byte == b'\n').count() as u64;
            match error.at {
                Place::Byte(byte) => assert!(byte <= data.len() as u64, "{error}"),
                Place::Text { line, column } => {
                    assert!(line <= lines + 1 && column <= data.len() as u64 + 1, "{error}");
                }
            }
            return;
        }
    };
    let _ = missing(&trace);
    for order in [ReplayOrder::Observed, ReplayOrder::Threads] {
        let Ok(script) = Script::of(&trace, order) else { return };
        let steps = script.lanes.iter().flat_map(|lane| &lane.steps);
        let mut count = 0;
        for step in steps {
            count += 1;
            let file = &script.files[step.file as usize];
            assert!(step.bytes > 0 && step.offset + step.bytes <= file.bytes, "{step:?}");
            assert!(step.after <= script.calls && step.place < script.calls, "{step:?}");
        }
        assert_eq!(count, script.calls);
    }
}
