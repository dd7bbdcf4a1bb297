//! The table of formats.

pub mod csv;
pub mod fio_log;
pub mod gdsio;
pub mod json;
pub mod plan;
pub mod summary;
pub mod text;

use gpuio_record::Record;
use text::Show;

use crate::set;

/// Columns that text fits into where no terminal says how many it has.
pub const TEXT_WIDTH: u16 = 120;

#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name after `--format`.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub summary: &'static str,
    /// Whether evidence of all jobs and rows of ranks are in it on demand ([`text::Show`]).
    pub on_demand: bool,
    /// Whether its text says that the record is doubtful; else the program does.
    pub tells_doubt: bool,
    /// The form of its checks in this format (`show --check`), where it has one.
    pub checks: Option<&'static str>,
    /// The record in this format, ending in a line feed; text has so many columns.
    pub render: fn(&Record, u16, Show<'_>) -> String,
}

/// Every format, in the order in which help lists them.
pub const FORMATS: &[Row] = &[
    Row {
        name: "text",
        summary: "tables and warnings for people; may change in any release",
        on_demand: true,
        tells_doubt: true,
        checks: Some("sentences for people"),
        render: text::render_text_with,
    },
    Row {
        name: "summary",
        summary: "one screen: a row per path, what it means, how to go on; may change",
        on_demand: false,
        tells_doubt: true,
        checks: None,
        render: summary::render,
    },
    Row {
        name: "json",
        summary: "the whole record, by docs/schema/record-v3.schema.json",
        on_demand: false,
        tells_doubt: false,
        checks: Some("records, and checks with record, check, result, reason"),
        render: |record, _, _| json::render(record),
    },
    Row {
        name: "csv",
        summary: "one row per job and direction; column names never change",
        on_demand: false,
        tells_doubt: true,
        checks: None,
        render: |record, _, show| {
            let recheck = &show.recheck.cloned().unwrap_or_default();
            match show.per_rank {
                true => csv::render_per_rank(record, recheck),
                false => csv::render(record, recheck),
            }
        },
    },
    Row {
        name: "gdsio",
        summary: "gdsio's line for the jobs that ran together",
        on_demand: false,
        tells_doubt: true,
        checks: None,
        render: |record, _, show| gdsio::render_with(record, show.recheck),
    },
    Row {
        name: "fio-json",
        summary: "the fields of fio's JSON that plotting tools read",
        on_demand: false,
        tells_doubt: true,
        checks: None,
        render: |record, _, _| set::fio_json(record),
    },
    Row {
        name: "plan",
        summary: "the resolved plan as a job file that repeats the run",
        on_demand: false,
        tells_doubt: false,
        checks: None,
        render: |record, _, _| plan::plan_text(&record.plan),
    },
    Row {
        name: "markdown",
        summary: "the text for an issue or a wiki; may change",
        on_demand: true,
        tells_doubt: true,
        checks: None,
        render: |record, _, show| text::document(record, show).markdown(),
    },
    Row {
        name: "html",
        summary: "the text as a page; may change (gpuio report draws plots)",
        on_demand: true,
        tells_doubt: true,
        checks: None,
        render: |record, _, show| text::document(record, show).page("bench"),
    },
];

pub fn find(name: &str) -> Option<&'static Row> {
    FORMATS.iter().find(|row| row.name == name)
}
