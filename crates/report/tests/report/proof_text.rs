//! The verdict is in the row of the number, and its evidence is shown where it is needed.

use crate::records;

use gpuio_record::{Assessment, Record, Route, Source};
use gpuio_report::format::text::Show;
use gpuio_report::format::{TEXT_WIDTH, summary};
use gpuio_report::set::{Member, Set, find_set_format};
use gpuio_report::{find, render_text, render_text_with_evidence};

const HEAD: &str = "path taken, with evidence:";

const ASTRAY: &str = "The bytes did not take the requested path. page cache: storage delivered \
                      less than 5 %.";

/// The first job of this record did not take the requested path.
fn astray() -> Record {
    let mut record = records::host_quick();
    let proof = record.jobs[0].proof.as_mut().unwrap();
    proof.as_requested = false;
    proof.verdict.words = "page cache".to_owned();
    (proof.verdict.route, proof.verdict.source) = (Route::HostMemory, Source::PageCache);
    proof.sentence = "page cache: storage delivered less than 5 %.".to_owned();
    record
}

#[test]
fn evidence_is_shown_of_jobs_on_another_path_and_of_all_if_requested() {
    assert!(!render_text(&records::host_quick(), 120).contains(HEAD));
    let text = render_text(&astray(), 120);
    assert_eq!(text.matches(HEAD).count(), 1, "{text}");
    assert_eq!(text.matches("    requested  ").count(), 1, "{text}");
    assert!(text.contains("  error: seq-read: The bytes did not take the requested"), "{text}");
    let row =
        "    process_io  read   supports      20.0 GiB of 20.0 GiB  process_io has its reasons\n";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("    without a reading  nvidia_fs ("), "{text}");
    assert!(!text.contains("read_bytes 4096 before"), "readings only with --evidence: {text}");
    let all = render_text_with_evidence(&astray(), 200);
    assert_eq!(all.matches("    requested  ").count(), 4, "{all}");
    let readings =
        "; read_bytes 4096 before, read_bytes 21474840576 after (counters of process_io)";
    assert!(all.contains(readings), "{all}");
    for width in [100, 120] {
        let text = render_text_with_evidence(&astray(), width);
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
    }
}

/// Text, the summary of `bench` and the page call it by one word.
#[test]
fn a_path_that_was_not_taken_is_an_error_in_all_texts() {
    let record = astray();
    let one = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = one(&format!("error: seq-read: {ASTRAY}"));
    for text in [render_text(&record, 120), summary::render(&record, 120, Show::default())] {
        assert_eq!(one(&text).matches(&line).count(), 1, "{text}");
    }
    assert!(!summary::render(&records::host_quick(), 120, Show::default()).contains("error:"));
    let set = Set { members: vec![Member::new("r", record)], ..Set::default() };
    let page = (find_set_format("markdown").unwrap().render)(&set);
    assert!(page.contains(&format!("- error: {ASTRAY} (seq-read)\n")), "{page}");
}

/// Evidence that does not decide is no contradiction; one that contradicts is.
#[test]
fn a_path_that_is_not_proved_is_not_called_another() {
    let report = |contradicts: bool| {
        let mut record = astray();
        let proof = record.jobs[0].proof.as_mut().unwrap();
        proof.verdict.words = "unknown".to_owned();
        (proof.verdict.route, proof.verdict.source) = (Route::Unknown, Source::Unknown);
        proof.evidence[0].assessment =
            if contradicts { Assessment::Contradicts } else { Assessment::Inconclusive };
        let set = Set { members: vec![Member::new("r", record)], ..Set::default() };
        ["markdown", "html"].map(|name| (find_set_format(name).unwrap().render)(&set))
    };
    for text in report(false) {
        assert!(text.contains("the path of the bytes could not be proved for 1 of 4 jobs"));
        assert!(!text.contains("not as requested") && !text.contains("did not take"), "{text}");
    }
    let mut record = astray();
    let proof = record.jobs[0].proof.as_mut().unwrap();
    (proof.verdict.route, proof.verdict.source) = (Route::Unknown, Source::Unknown);
    let text = render_text(&record, 200);
    assert!(text.contains("  warning: seq-read: The path of the bytes could not be proved."));
    for text in report(true) {
        assert!(text.contains("the bytes did not take the requested path in 1 of 4 jobs"));
    }
}

#[test]
fn the_verdict_is_in_every_format_with_figures() {
    let record = astray();
    let of = |name: &str| (find(name).unwrap().render)(&record, TEXT_WIDTH, Show::default());
    let row =
        |text: &str| text.lines().find(|line| line.starts_with("seq-read")).unwrap().to_owned();
    let wide = render_text(&record, 200);
    assert!(wide.contains(" path taken ") && row(&wide).contains(" page cache "), "{wide}");
    let narrow = render_text(&record, 120);
    assert!(row(&narrow).contains(" cache ") && narrow.contains(" taken "), "{narrow}");
    assert!(of("csv").contains(",page cache,page cache: storage delivered less than 5 %."));
    assert!(of("json").contains("\"words\": \"page cache\""));
    assert!(of("gdsio").contains("\n# path: seq-read: page cache: storage"));
}

#[test]
fn a_record_of_before_verdicts_has_no_column_and_reads_back() {
    let mut record = records::host_quick();
    for job in &mut record.jobs {
        job.proof = None;
    }
    for width in [80, 120, 200] {
        let text = render_text_with_evidence(&record, width);
        assert!(!text.contains(" took ") && !text.contains("path taken"), "{text}");
    }
    let mut json = serde_json::to_value(&record).unwrap();
    for job in json["jobs"].as_array_mut().unwrap() {
        job.as_object_mut().unwrap().remove("proof");
    }
    assert_eq!(serde_json::from_value::<Record>(json).unwrap(), record);
}

/// A path that is one of all was requested by nobody: other bytes than its own are no error.
#[test]
fn a_path_that_nobody_named_is_no_error() {
    let mut record = astray();
    record.plan.jobs[0].path.choice.requested = "all".to_owned();
    let text = render_text(&record, 120);
    assert!(text.contains("warning: seq-read: The bytes took another way than this"), "{text}");
    assert!(!text.contains("error: seq-read: The bytes"), "{text}");
}
