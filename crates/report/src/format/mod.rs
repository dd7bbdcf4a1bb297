//! The table of formats.

pub mod csv;
pub mod fio_log;
pub mod gdsio;
pub mod json;
pub mod plan;
pub mod summary;
pub mod text;

use gpuio_record::Record;

/// Columns that [`FORMATS`]' `text` fits into; [`text::render_text`] takes any width.
pub const TEXT_WIDTH: u16 = 120;

/// One format.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name after `--format`.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub summary: &'static str,
    /// The record in this format, ending in a line feed.
    pub render: fn(&Record) -> String,
}

/// Every format, in the order in which help lists them.
pub const FORMATS: &[Row] = &[
    Row {
        name: "text",
        summary: "tables and warnings for people; may change in any release",
        render: |record| text::render_text(record, TEXT_WIDTH),
    },
    Row {
        name: "summary",
        summary: "one screen: a row per path, what it means, how to go on; may change",
        render: |record| summary::render(record, TEXT_WIDTH),
    },
    Row {
        name: "json",
        summary: "the whole record, by docs/schema/record-v3.schema.json",
        render: json::render,
    },
    Row {
        name: "csv",
        summary: "one row per job and direction; column names never change",
        render: csv::render,
    },
    Row { name: "gdsio", summary: "gdsio's one line for all jobs together", render: gdsio::render },
    Row {
        name: "plan",
        summary: "the resolved plan as a job file that repeats the run",
        render: |record| plan::plan_text(&record.plan),
    },
];

/// The format of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Row> {
    FORMATS.iter().find(|row| row.name == name)
}
