//! Every format over hand-made records.

use crate::records;

use gpuio_report::format::TEXT_WIDTH;
use gpuio_report::format::text::Show;
use gpuio_report::{FORMATS, find, render_text};

#[test]
fn every_format_of_every_record() {
    let all = [
        ("host_quick", records::host_quick()),
        ("staged_in_trouble", records::staged_in_trouble()),
        ("software", records::software()),
        ("ceilings", records::ceilings()),
    ];
    for (name, record) in &all {
        for format in FORMATS.iter().filter(|format| !["json", "html"].contains(&format.name)) {
            insta::assert_snapshot!(
                format!("{name}.{}", format.name),
                (format.render)(record, TEXT_WIDTH, Show::default())
            );
        }
    }
    // One JSON record is enough to see the layout: the schema test covers the others.
    let json = find("json").expect("a row of FORMATS");
    let mut record = all[0].1.clone();
    record.plan.jobs.truncate(1);
    record.jobs.truncate(1);
    for job in &mut record.jobs {
        for latency in job.read.latency.iter_mut() {
            latency.total.buckets.truncate(2);
            latency.file.as_mut().expect("set by the builder").buckets.truncate(2);
        }
    }
    record.totals.clear();
    insta::assert_snapshot!(
        "host_one_job.json",
        (json.render)(&record, TEXT_WIDTH, Show::default())
    );
}

#[test]
fn narrow_and_wide_text() {
    insta::assert_snapshot!("many_jobs.120", render_text(&records::many_jobs(), 120));
    insta::assert_snapshot!("many_jobs.200", render_text(&records::many_jobs(), 200));
    insta::assert_snapshot!("software.80", render_text(&records::software(), 80));
}
