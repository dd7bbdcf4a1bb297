//! Markdown, for an issue or a wiki.

use crate::document::markdown_page::MarkdownPage;
use crate::document::table::{Row, Table};
use crate::document::terminal::drawn;
use crate::document::text::{Text, Tone};
use crate::document::{Block, Document, Item, List, Section, grouped, unique};

/// Names of what an item concerns; of more only the first.
const NAMES: usize = 4;

impl Document {
    /// The document as Markdown: an empty line between blocks.
    pub fn markdown(&self) -> String {
        let mut page = MarkdownPage::default();
        if !self.title.is_empty() {
            page.markup("# ");
            self.title.markdown(&mut page);
            page.markup("\n");
        }
        self.shown().for_each(|one| section(&mut page, one, "## "));
        page.finish()
    }
}

/// An empty line, unless nothing is above it.
fn begin(page: &mut MarkdownPage) {
    if !page.is_empty() {
        page.markup("\n");
    }
}

fn section(page: &mut MarkdownPage, of: &Section, mark: &'static str) {
    if !of.title.is_empty() {
        begin(page);
        page.markup(mark);
        of.title.markdown(page);
        page.markup("\n");
    }
    for block in &of.blocks {
        match block {
            Block::Section(inner) => section(page, inner, "### "),
            Block::Markup(_) => {}
            Block::Paragraph { text, .. } => {
                begin(page);
                text.markdown(page);
                page.markup("\n");
            }
            Block::List(all) => list(page, all),
            Block::Table(all) => table(page, all),
            Block::Lines(text) => {
                begin(page);
                page.lines(text);
            }
        }
    }
}

fn list(page: &mut MarkdownPage, all: &List) {
    begin(page);
    // An item without a label goes on with the one above that has one.
    let labelled = all.items.first().is_some_and(|first| !first.label.is_empty());
    for one in &all.items {
        let mark = if labelled && one.label.is_empty() { "  - " } else { "- " };
        item(page, one, mark);
    }
}

fn item(page: &mut MarkdownPage, one: &Item, mark: &'static str) {
    page.markup(mark);
    let label: Vec<&str> = one.label.split_whitespace().collect();
    if !label.is_empty() {
        page.text(&label.join(" ")).markup(": ");
    }
    one.text.markdown(page);
    match one.about.as_slice() {
        [] => {}
        [first, rest @ ..] if rest.len() >= NAMES => {
            page.markup(" (").text(&format!("{first} and {} more", rest.len())).markup(")");
        }
        names => {
            page.markup(" (").text(&names.join(", ")).markup(")");
        }
    }
    page.markup("\n");
    one.items.iter().for_each(|inner| item(page, inner, "  - "));
}

/// The table; below it the remarks on its rows, and why cells say what they say, each once.
fn table(page: &mut MarkdownPage, of: &Table) {
    let of = &of.only(|column, cells| !column.data && !drawn(cells));
    begin(page);
    row(page, of.columns.iter().map(|column| Text::from(column.head.as_ref())));
    page.markup("|");
    for column in &of.columns {
        page.markup(if column.figures { " ---: |" } else { " --- |" });
    }
    page.markup("\n");
    for one in &of.rows {
        if let Some(over) = &one.over {
            row(page, [Text::default().and(Tone::Strong, over.trim())].into_iter());
            continue;
        }
        row(page, one.cells.iter().map(|cell| cell.text.clone()));
    }
    let named = names(of);
    let notes = named.iter().flat_map(|(name, row)| {
        let cells = row.cells.iter().filter(|cell| !cell.note.is_empty());
        cells.map(|cell| (name.clone(), cell.note.as_str()))
    });
    let reasons = named.iter().enumerate().flat_map(|(nth, (_, row))| {
        let cells = row.cells.iter().filter(|cell| !cell.because.is_empty());
        cells.map(move |cell| (cell.because.as_str(), nth))
    });
    let reasons = grouped(reasons).into_iter().map(|(because, rows)| {
        let rows = unique(rows);
        let name = |nth: &usize| named[*nth].0.as_str();
        let names = match rows.as_slice() {
            all if all.len() == named.len() && all.len() > 1 => "all rows".to_owned(),
            [first, rest @ ..] if rest.len() >= NAMES => {
                format!("{}; and {} more", name(first), rest.len())
            }
            few => unique(few.iter().map(name)).join("; "),
        };
        (names, because)
    });
    let mut remarks = notes.chain(reasons).peekable();
    if remarks.peek().is_some() {
        page.markup("\n");
    }
    for (about, text) in remarks {
        page.markup("- ");
        Text::default().and(Tone::Strong, about).and(Tone::Plain, ": ").markdown(page);
        page.text(text).markup("\n");
    }
}

/// The rows with cells, each by its first one; where others have the same, with the text above them
/// and the words beside it that tell them apart.
fn names(of: &Table) -> Vec<(String, &Row)> {
    let mut over = "";
    let mut rows = Vec::new();
    for row in &of.rows {
        match &row.over {
            Some(text) => over = text.trim(),
            None => rows.push((over, row)),
        }
    }
    let plain = |row: &Row, nth: usize| {
        row.cells.get(nth).map_or_else(String::new, |cell| cell.text.plain())
    };
    let mut names: Vec<String> = rows.iter().map(|(_, row)| plain(row, 0)).collect();
    let words = of.columns.iter().enumerate().skip(1).filter(|(_, column)| !column.figures);
    for column in std::iter::once(None).chain(words.map(|(nth, _)| Some(nth))) {
        let part = |(over, row): &(&str, &Row)| match column {
            None => (*over).to_owned(),
            Some(nth) => plain(row, nth),
        };
        for (_, same) in grouped(names.clone().into_iter().zip(0..)) {
            let parts: Vec<String> = same.iter().map(|nth: &usize| part(&rows[*nth])).collect();
            if parts.windows(2).all(|pair| pair[0] == pair[1]) {
                continue;
            }
            for (nth, part) in same.into_iter().zip(parts).filter(|(_, part)| !part.is_empty()) {
                names[nth] += &format!(", {part}");
            }
        }
    }
    names.into_iter().zip(rows).map(|(name, (_, row))| (name, row)).collect()
}

fn row(page: &mut MarkdownPage, cells: impl Iterator<Item = Text>) {
    page.markup("|");
    for text in cells {
        if !text.is_empty() {
            page.markup(" ");
            text.markdown(page);
        }
        page.markup(" |");
    }
    page.markup("\n");
}
