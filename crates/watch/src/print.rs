//! Intervals as text and as lines of JSON.

use std::fmt::Write as _;

use gpuio_base::units::{printable, printable_short};
use serde_json::{Map, Value, json};

use crate::interval::{Interval, Table};
use crate::metric::{Figure, Form};

/// The form of JSON lines; the number rises when a field changes meaning or goes.
pub const SCHEMA: &str = "gpuio-top/1";

/// Widest name that is shown in full in a table.
const WIDEST_NAME: usize = 24;

/// A figure as it is shown; `-` where it is not known.
pub fn cell(form: Form, value: Option<f64>) -> String {
    let Some(value) = value.map(|value| form.shown(value)) else { return "-".to_owned() };
    match form {
        Form::Percent => format!("{value:.1}"),
        _ if value >= 9999.5 => format!("{value:.0}"),
        Form::Number if value == value.trunc() => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// Narrower screens have the figures that are `narrow`, and no others.
const NARROW: usize = 96;

/// Figures of a table that fit: those of a narrow screen, and of the others, in their order, as
/// many as fit.
pub fn columns(table: &Table, width: usize) -> Vec<(usize, &'static Figure)> {
    let needs = |figure: &Figure| figure.title().chars().count().max(8) + 1;
    let figures = table.probe.figures;
    let narrow: usize = figures.iter().filter(|one| one.narrow).map(needs).sum();
    let mut space = if width < NARROW { 0 } else { width.saturating_sub(narrow + WIDEST_NAME) };
    let mut fits = |figure: &Figure| {
        let left = space.checked_sub(needs(figure));
        space = left.unwrap_or(space);
        left.is_some()
    };
    figures.iter().enumerate().filter(|(_, one)| one.narrow || fits(one)).collect()
}

/// A table per kind of device that there is.
pub fn plain(interval: &Interval, width: usize) -> String {
    let shown = interval.tables.iter().filter(|table| !table.rows.is_empty());
    shown.map(|table| one_table(table, width)).collect()
}

/// A line of the kinds that are absent; lines of JSON have the reasons.
pub fn absent(interval: &Interval) -> String {
    let absent = interval.tables.iter().filter(|table| table.absent.is_some());
    let titles: Vec<&str> = absent.map(|table| table.probe.title).collect();
    match titles.as_slice() {
        [] => String::new(),
        all => format!("Not here: {}. --format json has the reasons.\n", all.join(", ")),
    }
}

fn one_table(table: &Table, width: usize) -> String {
    let columns = columns(table, width);
    let names = table.rows.iter().map(|row| row.name.chars().count());
    let title = table.probe.title.len();
    let name = names.max().unwrap_or(0).max(title).min(WIDEST_NAME);
    let mut text = format!("{:<name$}", short(table.probe.title, name));
    for (_, figure) in &columns {
        let _ = write!(text, " {:>1$}", figure.title(), figure.title().len().max(8));
    }
    text.push('\n');
    for row in &table.rows {
        let _ = write!(text, "{:<name$}", short(&row.name, name));
        if let Some(why) = row.why {
            let _ = writeln!(text, " {why}");
            continue;
        }
        let figures = row.figures(table.probe);
        for (nth, figure) in &columns {
            let cell = cell(figure.form, figures.get(*nth).copied().flatten());
            let _ = write!(text, " {:>1$}", cell, figure.title().len().max(8));
        }
        if !row.about.is_empty() {
            let _ = write!(text, "  {}", printable_short(&row.about));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// The text, which may be from outside, in so many characters, its end cut.
pub fn short(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

/// One object in one line: schema, time (RFC 3339), length, devices with their figures in base
/// units (`null` where not known), and kinds that are absent with their reasons.
pub fn json_line(interval: &Interval, time: &str) -> String {
    let mut devices = Vec::new();
    let mut absent = Map::new();
    for table in &interval.tables {
        if let Some(why) = &table.absent {
            absent.insert(table.probe.name.to_owned(), Value::from(why.as_str()));
        }
        for row in &table.rows {
            let mut figures = Map::new();
            for (figure, value) in table.probe.figures.iter().zip(row.figures(table.probe)) {
                figures.insert(figure.key.to_owned(), json!(value));
            }
            devices.push(json!({
                "kind": table.probe.name,
                "device": row.name,
                "unknown": row.why,
                "about": (!row.about.is_empty()).then_some(&row.about),
                "figures": figures,
            }));
        }
    }
    let line = json!({
        "schema": SCHEMA,
        "time": time,
        "seconds": interval.seconds,
        "devices": devices,
        "absent": absent,
    });
    line.to_string() + "\n"
}
