//! One page: the results, and the statements by kind.

use std::borrow::Cow;

use gpuio_base::document::{Cell, Columns, Item, Layout, List, Section};
use gpuio_base::units::whole;

use crate::post::{About, Post, Run, Statement, hold};

/// Rows of the table of results.
const MOST_ROWS: usize = 64;

impl About {
    /// The head of its part of the page.
    pub fn title(self) -> &'static str {
        match self {
            About::Path => "WAY OF THE BYTES",
            About::Limit => "LIMITS",
            About::Contradiction => "CONTRADICTIONS",
            About::Agreement => "AGREEMENTS",
            About::Compared => "RESULTS AGAINST EACH OTHER",
            About::Next => "TO RUN NEXT",
        }
    }
}

/// The results of texts and what follows from them; `None` where there is neither.
pub fn section(posts: &[Post], statements: &[Statement]) -> Option<Section> {
    let runs: Vec<(&Post, &Run)> =
        posts.iter().flat_map(|post| post.runs.iter().map(move |run| (post, run))).collect();
    if runs.is_empty() && statements.is_empty() {
        return None;
    }
    let mut section = Section::new("results", format!("RESULTS IN THESE TEXTS ({})", runs.len()));
    let several = posts.iter().filter(|post| !post.is_empty()).count() > 1;
    if !runs.is_empty() {
        let shown = runs.iter().take(MOST_ROWS).copied();
        section.table(table(several).table("results", shown));
    }
    if runs.len() > MOST_ROWS {
        let more = runs.len() - MOST_ROWS;
        section.paragraph(format!("{more} more results are not shown here."));
    }
    for about in About::ALL {
        let own: Vec<&Statement> = statements.iter().filter(|one| one.about == about).collect();
        if own.is_empty() {
            continue;
        }
        let mut part = Section::new("", format!("{} ({})", about.title(), own.len()));
        let items = own.into_iter().map(|one| Item::new(place(one, several), one.words.as_str()));
        part.list(List::new(Layout::columns(if several { 24 } else { 14 }, 1), items));
        section.push(gpuio_base::document::Block::Section(part));
    }
    Some(section)
}

/// The lines of a statement: `416`, `416 430`, with the file where there are several.
fn place(statement: &Statement, several: bool) -> String {
    let mut lines: Vec<String> = statement.lines.iter().take(3).map(usize::to_string).collect();
    if statement.lines.len() > 3 {
        lines.push("…".to_owned());
    }
    let lines = lines.join(" ");
    let file = statement.file.rsplit('/').next().unwrap_or_default();
    match several {
        true if lines.is_empty() => file.to_owned(),
        true => format!("{file}:{lines}"),
        false if lines.is_empty() => "all".to_owned(),
        false => lines,
    }
}

fn table<'a>(several: bool) -> Columns<'a, (&'a Post, &'a Run)> {
    type Row<'a> = (&'a Post, &'a Run);
    fn got<'a>(row: &Row<'a>) -> Option<&'a super::Got> {
        row.1.got.as_ref()
    }
    let asked = |row: &Row<'a>| row.1.asked.as_ref();
    let text = |text: Option<String>| text.map_or_else(Cell::default, Cell::from);
    Columns::new()
        .when(several, |columns| {
            columns.words("file", |row: &Row<'a>| {
                row.0.name.rsplit('/').next().unwrap_or_default().to_owned()
            })
        })
        .figures(Cow::from("line"), |row: &Row<'a>| row.1.line.to_string())
        .words("host", move |row: &Row<'a>| text(row.1.host.clone()))
        .if_any()
        .words("of", move |row: &Row<'a>| what(row.1))
        .words("GPU", move |row: &Row<'a>| {
            let gpus = asked(row).map(|asked| asked.gpus.clone()).unwrap_or_default();
            let names: Vec<String> = gpus.iter().map(u32::to_string).collect();
            text((!names.is_empty()).then(|| names.join(",")))
        })
        .if_any()
        .figures("threads", move |row: &Row<'a>| {
            let own = got(row).and_then(|got| got.threads);
            let threads = own.or_else(|| asked(row)?.threads);
            text(threads.map(|threads| threads.to_string()))
        })
        .if_any()
        .words("block", |row: &Row<'a>| {
            let block = got(row).and_then(|got| got.block);
            block.map_or_else(Cell::default, Cell::bytes)
        })
        .if_any()
        .figures("rate", |row: &Row<'a>| {
            hold::rate_of(row.1).map_or_else(Cell::default, Cell::rate)
        })
        .figures("IOPS", |row: &Row<'a>| {
            got(row).and_then(|got| got.iops).map_or_else(Cell::default, Cell::count)
        })
        .if_any()
        .figures("latency", |row: &Row<'a>| {
            let latency = got(row).and_then(|got| got.latency);
            latency.map_or_else(Cell::default, |ns| Cell::time(whole(ns)))
        })
        .if_any()
        .figures("in flight", move |row: &Row<'a>| {
            let in_flight = got(row).and_then(super::Got::in_flight);
            text(in_flight.map(|count| format!("{count:.1}")))
        })
        .if_any()
        .words("beside it", move |row: &Row<'a>| {
            let tools = gpuio_base::document::unique(row.1.beside.iter().map(|seen| seen.tool));
            text((!tools.is_empty()).then(|| tools.join(", ")))
        })
        .if_any()
}

/// Tool, direction and path: `gdsio randread gds`.
fn what(run: &Run) -> String {
    let Some(got) = &run.got else {
        let tool = run.asked.as_ref().map_or("no result line", |asked| asked.tool);
        return match run.asked.is_some() {
            true => format!("{tool}, no result line"),
            false => tool.to_owned(),
        };
    };
    let random = if got.random == Some(true) { "rand" } else { "" };
    let path = got.path.as_deref().map(|path| format!(" {path}")).unwrap_or_default();
    format!("{} {random}{}{path}", got.tool, got.direction.name())
}
