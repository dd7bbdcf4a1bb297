//! What holds for the text and plan formats whatever the record.

use crate::records;

use gpuio_record::{EndedHow, Record};
use gpuio_report::{plan_text, render_text};

/// Lines that hold results: rows of tables, legs, workers.
fn result_lines(text: &str) -> Vec<&str> {
    let figure =
        |line: &&str| line.contains("GiB/s") || line.contains("p50") || line.contains("µs");
    text.lines()
        .filter(|line| line.starts_with("try") || line.starts_with("  try"))
        .filter(figure)
        .collect()
}

#[test]
fn a_software_gpu_is_named_on_top_and_on_every_line_of_results() {
    let record = records::software();
    for width in [70, 80, 120, 250] {
        let text = render_text(&record, width);
        assert!(text.starts_with("SOFTWARE GPU: "), "{text}");
        let lines = result_lines(&text);
        assert!(lines.len() >= 2, "{text}");
        for line in lines {
            assert!(line.contains("software GPU"), "{line}");
        }
        let done = text
            .lines()
            .find(|line| line.contains("moved by all"))
            .unwrap();
        assert!(done.contains("[software GPU]"), "{done}");
    }
    assert!(
        !render_text(&records::host_quick(), 120)
            .to_lowercase()
            .contains("software")
    );
}

#[test]
fn totals_of_a_software_gpu_are_marked_too() {
    let mut record = records::many_jobs();
    record.plan.software_gpu = true;
    let text = render_text(&record, 120);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("iB/s ")).collect();
    assert!(rows.len() >= 15, "{text}");
    assert!(
        rows.iter().all(|row| row.contains("software GPU")),
        "{text}"
    );
}

#[test]
fn text_keeps_the_width_it_was_given() {
    for record in [
        records::host_quick(),
        records::staged_in_trouble(),
        records::many_jobs(),
    ] {
        for width in [100, 120, 160] {
            for line in render_text(&record, width).lines() {
                assert!(
                    line.chars().count() <= usize::from(width),
                    "{width}: {line}"
                );
            }
        }
    }
}

#[test]
fn names_cannot_reach_the_terminal_or_start_a_setting() {
    let mut record = records::software();
    record.plan.jobs[0].name = "a\u{1b}[31m\nrw = write".to_owned();
    record.plan.jobs[0].notes = vec!["x\nfilename = /dev/sda".to_owned()];
    record.plan.jobs[0].targets[0].path = "/data/a\nrefill = 1".to_owned();
    let text = render_text(&record, 120);
    assert!(!text.contains('\u{1b}'));
    let plan = plan_text(&record.plan);
    assert!(!plan.contains('\u{1b}'));
    assert_eq!(
        plan.lines().filter(|line| line.starts_with("rw =")).count(),
        1,
        "{plan}"
    );
    assert_eq!(
        plan.lines()
            .filter(|line| line.starts_with("filename ="))
            .count(),
        1,
        "{plan}"
    );
    assert_eq!(
        plan.lines()
            .filter(|line| line.starts_with("refill ="))
            .count(),
        1,
        "{plan}"
    );
    assert!(plan.contains("can't hold filename exactly"), "{plan}");
}

#[test]
fn a_value_that_a_reader_would_cut_is_marked() {
    let mut record = records::host_quick();
    let job = &mut record.plan.jobs[0];
    job.directory = Some("/data/run #3".to_owned());
    assert!(plan_text(&record.plan).contains("can't hold directory exactly"));
    record.plan.jobs[0].directory = Some("/data/run#3".to_owned());
    assert!(!plan_text(&record.plan).contains("exactly"));
}

#[test]
fn empty_and_ended_records_say_so() {
    let mut record: Record = records::host_quick();
    record.ended = EndedHow::Failed;
    record.jobs.clear();
    record.totals.clear();
    let text = render_text(&record, 120);
    assert!(text.contains("FAILED: "), "{text}");
    assert!(
        text.contains("NOT RUN: seq-read, seq-write, rand-read, rand-mixed"),
        "{text}"
    );
    assert!(text.contains("no job ran"), "{text}");
    for format in gpuio_report::FORMATS {
        let out = (format.render)(&record);
        assert!(out.is_empty() || out.ends_with('\n'), "{}", format.name);
    }
}
