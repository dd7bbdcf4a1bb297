//! One page: the results, and the statements by kind.

use std::borrow::Cow;

use gpuio_base::document::{Cell, Columns, Item, Layout, List, Part, Section};
use gpuio_base::stat::Percentile;
use gpuio_base::units::{human_ns, many, whole};

use crate::foreign::Direction;
use crate::post::{About, Asked, Post, Run, Statement, hold, short};

/// Rows of the table of results.
const MOST_ROWS: usize = 64;

impl About {
    /// The head of its part of the page.
    pub fn title(self) -> &'static str {
        match self {
            About::Path => "WAY OF THE BYTES",
            About::Expected => "EXPECTED",
            About::Limit => "LIMITS",
            About::Contradiction => "CONTRADICTIONS",
            About::LeftOut => "LEFT OUT",
            About::Agreement => "AGREEMENTS",
            About::Compared => "RESULTS AGAINST EACH OTHER",
            About::Next => "TO RUN NEXT",
        }
    }
}

/// The results of texts and what follows from them; `None` where there is neither.
pub fn section(posts: &[Post], statements: &[Statement]) -> Option<Section> {
    // Tools that looked on, beside neither command nor rate, saw no run of a load.
    let is_load = |run: &&Run| run.got.is_some() || run.asked.is_some() || run.in_words.is_some();
    let of_post = |post| move |run| (post, run);
    let runs =
        posts.iter().flat_map(|post: &Post| post.runs.iter().filter(is_load).map(of_post(post)));
    let runs: Vec<(&Post, &Run)> = runs.collect();
    if runs.is_empty() && statements.is_empty() {
        return None;
    }
    let are_requests = runs.iter().all(|(_, run)| run.request().is_some());
    let title = if are_requests { "REQUESTS" } else { "RESULTS" };
    let title = match runs.len() {
        0 => "STATEMENTS OF THESE TEXTS".to_owned(),
        count => format!("{title} IN THESE TEXTS ({count})"),
    };
    let mut section = Section::new("results", title);
    let several = posts.iter().filter(|post| !post.is_empty()).count() > 1
        || posts.iter().any(|post| !post.joined.is_empty());
    if !runs.is_empty() {
        let shown = runs.iter().take(MOST_ROWS).copied();
        section.table(table(several).table("results", shown));
    }
    if runs.len() > MOST_ROWS {
        let more = (runs.len() - MOST_ROWS) as u64;
        let more = many(more, "more result is|more results are");
        section.paragraph(format!("{more} not shown here."));
    }
    for post in posts {
        for (line, heads) in &post.unread {
            let place =
                if several { format!("{}:{line}", short(&post.name)) } else { line.to_string() };
            let heads = heads.join(", ");
            section.paragraph(format!("Not read of the table at {place}: {heads}."));
        }
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
    let file = short(&statement.file);
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
            columns.words("file", |row: &Row<'a>| short(&row.0.name).to_owned())
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
        .part(Part::Second)
        .words("block", |row: &Row<'a>| {
            let block = row.1.request().and_then(Asked::block_or_usual);
            let block = got(row).map_or(block, |got| got.block);
            block.map_or_else(Cell::default, Cell::bytes)
        })
        .if_any()
        .part(Part::Second)
        .figures("rate", |row: &Row<'a>| {
            hold::rate_of(row.1).map_or_else(Cell::default, Cell::rate)
        })
        .if_any()
        .part(Part::First)
        .figures("IOPS", |row: &Row<'a>| {
            got(row).and_then(|got| got.iops).map_or_else(Cell::default, Cell::count)
        })
        .if_any()
        .part(Part::First)
        .figures("latency", |row: &Row<'a>| {
            let latency = got(row).and_then(|got| got.latency);
            latency.map_or_else(Cell::default, |ns| Cell::time(whole(ns)))
        })
        .if_any()
        .part(Part::First)
        .words("percentiles", move |row: &Row<'a>| {
            let all = got(row).map(|got| got.percentiles.as_slice()).unwrap_or_default();
            let one = |(at, ns): &(_, f64)| format!("{} {}", Percentile::label(*at), human_ns(*ns));
            text((!all.is_empty()).then(|| all.iter().map(one).collect::<Vec<_>>().join(", ")))
        })
        .if_any()
        .part(Part::Second)
        .figures("in flight", move |row: &Row<'a>| {
            let in_flight = got(row).and_then(super::Got::in_flight);
            text(in_flight.map(|count| format!("{count:.1}")))
        })
        .if_any()
        .part(Part::Second)
        .words("beside it", move |row: &Row<'a>| {
            let tools = gpuio_base::document::unique(row.1.beside.iter().map(|seen| seen.tool));
            text((!tools.is_empty()).then(|| tools.join(", ")))
        })
        .if_any()
        .part(Part::Second)
}

/// Tool, direction and path: `gdsio randread gds`.
fn what(run: &Run) -> String {
    let Some(got) = &run.got else {
        return match &run.asked {
            Some(Asked { is_request: true, tool, direction, random, path, .. }) => {
                let load = load(*direction, *random, path.as_deref());
                format!("{tool}{load}, requested")
            }
            Some(asked) => format!("{}, no result line", asked.tool),
            None => "no result line".to_owned(),
        };
    };
    format!("{}{}", got.tool, load(Some(got.direction), got.random, got.path.as_deref()))
}

/// ` randread gds`, as far as it is known.
fn load(direction: Option<Direction>, random: Option<bool>, path: Option<&str>) -> String {
    let random = if random == Some(true) { "rand" } else { "" };
    let load = direction.map(|direction| format!(" {random}{}", direction.name()));
    // "Cached" would be a rate of memory to people: the page cache need not have the bytes.
    let path = path.map(|path| if path == "cached" { "buffered" } else { path });
    load.unwrap_or_default() + &path.map(|path| format!(" {path}")).unwrap_or_default()
}
