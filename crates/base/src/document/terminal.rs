//! Text for a terminal of some width.

use std::borrow::Cow;

use crate::units::{printable, printable_short};
use unicode_width::UnicodeWidthStr;

use crate::document::cell::Cell;
use crate::document::table::{Column, Look, Part, Row, Table};
use crate::document::{Block, Document, Item, Layout, List, Section};

/// Where a terminal's lines end.
#[derive(Debug, Clone, Copy)]
struct Paper {
    /// Tables.
    width: u16,
    /// Paragraphs: long lines read badly.
    prose: usize,
    /// Whether no text is cut; whoever has made its texts safe says so.
    whole: bool,
}

impl Document {
    /// The document in lines of at most `width` characters where words and tables allow that. Ends
    /// in a line feed, unless it is empty.
    pub fn terminal(&self, width: u16) -> String {
        render(self, Paper { width, prose: usize::from(width), whole: false })
    }

    /// The same in lines as long as they are.
    pub fn unbroken(&self) -> String {
        self.terminal(u16::MAX)
    }

    /// The same with paragraphs of at most `prose` characters, and no text cut however long.
    pub fn terminal_with(&self, width: u16, prose: u16) -> String {
        render(self, Paper { width, prose: usize::from(prose), whole: true })
    }
}

impl Table {
    /// The table alone.
    pub fn terminal(&self, width: u16) -> String {
        let table = &self.only(|column, cells| !column.data && !drawn(cells));
        match self.look {
            Look::Ruled => ruled(table, usize::from(width)),
            Look::RuledBy(by) | Look::Indented(by) => {
                let mut lines = lines(table, Form::Full);
                let room = usize::from(width).saturating_sub(by.into());
                last_in_lines(&mut lines, table, room);
                draw(&lines, table, 2)
            }
        }
    }
}

fn render(document: &Document, paper: Paper) -> String {
    let mut out = String::new();
    for of_document in document.shown() {
        if !out.is_empty() {
            out.push('\n');
        }
        section(&mut out, of_document, paper);
    }
    out
}

fn section(out: &mut String, of: &Section, paper: Paper) {
    if !of.title.is_empty() {
        let line = Paper { prose: usize::from(paper.width), whole: true, ..paper };
        wrap(out, "", 0, &of.title.plain(), line);
    }
    let begin = out.len();
    for block in &of.blocks {
        match block {
            Block::Paragraph { text, .. } => wrap(out, "", 0, &text.plain(), paper),
            Block::List(all) => list(out, all, paper),
            Block::Table(table) => out.push_str(&table.terminal(paper.width)),
            Block::Lines(text) => {
                for line in text.lines() {
                    out.push_str(&printable(line));
                    out.push('\n');
                }
            }
            Block::Markup(_) => {}
            Block::Section(inner) => {
                // A heading stands apart from what is above it.
                if !inner.title.is_empty() && out.len() > begin && !out.ends_with("\n\n") {
                    out.push('\n');
                }
                section(out, inner, paper);
            }
        }
    }
}

fn list(out: &mut String, all: &List, paper: Paper) {
    all.items.iter().for_each(|one| item(out, one, all.layout, paper));
}

/// Blanks before further lines of an item whose label is long.
const HANG: usize = 4;

fn item(out: &mut String, one: &Item, layout: Layout, paper: Paper) {
    let colon = if layout.colon && !one.label.is_empty() { ":" } else { "" };
    let label = printable(&one.label);
    let mut head = " ".repeat(layout.indent);
    head.push_str(&format!("{:<1$}", format!("{label}{colon}"), layout.column));
    if !one.label.is_empty() || layout.column > 0 {
        head.push_str(&" ".repeat(layout.gap));
    }
    let indent = head.chars().count();
    let prose = if layout.wide { usize::from(paper.width) } else { paper.prose };
    let paper = Paper { prose, ..paper };
    let about = match one.about.as_slice() {
        [] => String::new(),
        names => format!(" ({})", names.join(", ")),
    };
    // Behind a label of more than half a line the text would be a tower.
    let hang = if 2 * indent > prose { layout.indent + HANG } else { indent + layout.hang };
    wrap(out, &head, hang, &(one.text.plain() + &about), paper);
    let below = Layout { indent, ..Layout::labels(0) };
    one.items.iter().for_each(|inner| item(out, inner, below, paper));
}

/// `text` behind `head`; lines after the first begin with `indent` blanks. Lines break only at
/// blanks: a longer word (a path) has a line of its own.
fn wrap(out: &mut String, head: &str, indent: usize, text: &str, paper: Paper) {
    let text: Cow<'_, str> = if paper.whole { printable(text) } else { printable_short(text) };
    let from = out.len();
    let (mut used, mut bare) = (head.chars().count(), true);
    out.push_str(head);
    for word in text.split(' ') {
        let length = word.chars().count();
        if !bare && used + 1 + length > paper.prose {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            (used, bare) = (indent, true);
        }
        if !bare {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        (used, bare) = (used + length, false);
    }
    let end = out[from..].trim_end_matches(' ').len();
    out.truncate(from + end);
    out.push('\n');
}

/// How cells are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Full,
    /// Words abbreviated.
    Short,
    /// And figures without the blank before their unit.
    Tight,
}

/// The first column may be split into lines of this many characters.
const NARROWEST: usize = 10;
/// The same of all columns of words, where no other form fits.
const SQUEEZED: usize = 8;

/// One table; without what can be said in a line above, or as two, if it does not fit.
fn ruled(table: &Table, width: usize) -> String {
    if let Some(text) = fitted(table, width) {
        return text;
    }
    let (table, alike) = condensed(table);
    let mut above = String::new();
    if !alike.is_empty() {
        let paper = Paper { width: 0, prose: width, whole: true };
        wrap(&mut above, "all: ", 5, &alike.join(", "), paper);
    }
    let below = fitted(&table, width).unwrap_or_else(|| in_parts(&table, width));
    above + &below
}

/// The table without the columns that are spare, and those that have one value in all rows: that
/// value with its head.
fn condensed(table: &Table) -> (Table, Vec<String>) {
    let mut alike = Vec::new();
    let mut nth = 0;
    let condensed = table.only(|column, cells| {
        nth += 1;
        let mut texts = cells.iter().filter(|cell| !cell.is_empty()).map(|cell| cell.text.plain());
        let first = texts.next().filter(|_| nth > 1 && cells.len() > 2);
        if let Some(text) = first.filter(|first| texts.all(|text| text == *first)) {
            alike.push(format!("{} {text}", column.head));
            return false;
        }
        !column.spare
    });
    (condensed, alike)
}

/// The two parts of a table.
fn in_parts(table: &Table, width: usize) -> String {
    let part = |part: Part| {
        let mut table = table.only(|column, _| column.part == Part::Both || column.part == part);
        if part == Part::Second {
            let of_part: Vec<bool> =
                table.columns.iter().map(|column| column.part == part).collect();
            let has = |row: &Row| {
                row.cells.iter().zip(&of_part).any(|(cell, of)| *of && !cell.is_empty())
            };
            table.rows.retain(has);
        }
        let fits = fitted(&table, width).or_else(|| squeezed(&table, width));
        fits.unwrap_or_else(|| draw(&lines(&table, Form::Short), &table, 1))
    };
    let (first, second) = (part(Part::First), part(Part::Second));
    let is_one = table.columns.iter().all(|column| column.part == Part::Both);
    if is_one { first } else { format!("{first}\n{second}") }
}

/// The tight form with columns of words split into lines, the widest first; `None` where it does
/// not fit so either.
fn squeezed(table: &Table, width: usize) -> Option<String> {
    let mut lines = lines(table, Form::Tight);
    let mut rooms = widths(&lines);
    let gaps = rooms.len().saturating_sub(1);
    while rooms.iter().sum::<usize>() + gaps > width {
        let words = rooms.iter_mut().zip(&table.columns).filter(|(_, column)| !column.figures);
        let widest = words.map(|(room, _)| room).max()?;
        *widest = widest.checked_sub(1).filter(|room| *room >= SQUEEZED)?;
    }
    for line in &mut lines {
        for (cell, room) in line.iter_mut().zip(&rooms) {
            *cell = in_lines(cell, *room);
        }
    }
    Some(draw(&lines, table, 1))
}

/// Whether a column has pictures, and no text.
pub(crate) fn drawn(cells: &[&Cell]) -> bool {
    cells.iter().any(|cell| !cell.picture.is_empty())
}

/// The first form that fits: words in full, abbreviated, units without the blank before them, each
/// with wide gaps or else narrow ones; and the last with split cells in its first column.
fn fitted(table: &Table, width: usize) -> Option<String> {
    let mut forms = [Form::Full, Form::Short, Form::Tight].map(|form| lines(table, form));
    let natural = |lines: &[Vec<String>], gap: usize| {
        widths(lines).iter().sum::<usize>() + gap * table.columns.len().saturating_sub(1)
    };
    for lines in &forms {
        if let Some(gap) = [2, 1].into_iter().find(|gap| natural(lines, *gap) <= width) {
            return Some(draw(lines, table, gap));
        }
    }
    let tight = &mut forms[2];
    let first = widths(tight).first().copied().unwrap_or(0);
    let left = width.checked_sub(natural(tight, 1) - first)?;
    if left < NARROWEST {
        return None;
    }
    for first in tight.iter_mut().filter_map(|line| line.first_mut()) {
        *first = in_lines(first, left);
    }
    Some(draw(tight, table, 1))
}

/// Heads and cells as texts.
fn lines(table: &Table, form: Form) -> Vec<Vec<String>> {
    let head = |column: &Column| match column.short {
        Some(short) if form != Form::Full => short.to_owned(),
        _ => printable(&column.head).into_owned(),
    };
    let text = |(cell, column): (&Cell, &Column)| {
        let text = match &cell.short {
            Some(short) if form != Form::Full => short.clone(),
            _ => cell.text.plain(),
        };
        let text = printable_short(&text).into_owned();
        if form == Form::Tight && column.tight { text.replace(' ', "") } else { text }
    };
    let row = |row: &Row| row.cells.iter().zip(&table.columns).map(text).collect();
    let heads = table.columns.iter().map(head).collect();
    [heads].into_iter().chain(table.rows.iter().map(row)).collect()
}

/// The columns that the lines of a cell take.
fn width(cell: &str) -> usize {
    cell.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let columns = lines.first().map_or(0, Vec::len);
    let widest = |at: usize| lines.iter().filter_map(|line| Some(width(line.get(at)?))).max();
    (0..columns).map(|at| widest(at).unwrap_or(0).max(1)).collect()
}

/// Columns with `gap` blanks between them; the rule if there is one.
fn draw(lines: &[Vec<String>], table: &Table, gap: usize) -> String {
    let (indent, rule) = match table.look {
        Look::Ruled => (0, true),
        Look::RuledBy(by) => (by, true),
        Look::Indented(by) => (by, false),
    };
    let indent = " ".repeat(usize::from(indent));
    let widths = widths(lines);
    let all = widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1);
    let mut out = String::new();
    let mut put = |text: &str| {
        let text = text.trim_end();
        out.push_str(if text.is_empty() { "" } else { &indent });
        out.push_str(text);
        out.push('\n');
    };
    for (nth, line) in lines.iter().enumerate() {
        // The heads have none; without a word and a rule they are no line.
        let over = nth.checked_sub(1).and_then(|nth| table.rows.get(nth)?.over.as_deref());
        if let Some(over) = over {
            put(&printable_short(over));
            continue;
        }
        if nth == 0 && !rule && line.iter().all(String::is_empty) {
            continue;
        }
        let deep = line.iter().map(|cell| cell.lines().count()).max().unwrap_or(0).max(1);
        for part in 0..deep {
            let mut text = String::new();
            for ((cell, wide), column) in line.iter().zip(&widths).zip(&table.columns) {
                let cell = cell.lines().nth(part).unwrap_or_default();
                let fill = " ".repeat(wide - width(cell) + gap);
                let [one, two] =
                    if column.figures { [&fill[gap..], cell] } else { [cell, &fill[gap..]] };
                text.push_str(one);
                text.push_str(two);
                text.push_str(&fill[..gap]);
            }
            put(&text);
        }
        if nth == 0 && rule {
            put(&"-".repeat(all));
        }
    }
    out
}

/// Splits the cells of a last column of words at blanks, where the table is too wide and the column
/// has room.
fn last_in_lines(lines: &mut [Vec<String>], table: &Table, width: usize) {
    let widths = widths(lines);
    let Some((own, others)) = widths.split_last() else { return };
    let room = width.saturating_sub(others.iter().map(|column| column + 2).sum());
    let is_words = table.columns.last().is_some_and(|column| !column.figures);
    if !is_words || *own <= room || room < NARROWEST {
        return;
    }
    for cell in lines.iter_mut().filter_map(|line| line.last_mut()) {
        let mut text = String::new();
        wrap(&mut text, "", 0, cell, Paper { width: 0, prose: room, whole: true });
        *cell = text.trim_end().to_owned();
    }
}

/// Splits a name into lines of at most `width` characters, at separators if that leaves lines at
/// least half full, and else at a blank.
fn in_lines(name: &str, width: usize) -> String {
    let mut rest: Vec<char> = name.chars().collect();
    let mut lines: Vec<String> = Vec::new();
    while rest.len() > width {
        let parts = |c: &char| matches!(c, '-' | '_' | '.' | ',' | ' ' | '/' | ':');
        let after = rest[..width].iter().rposition(parts).map(|at_column| at_column + 1);
        let blank = rest[..width].iter().rposition(|c| *c == ' ').map(|at_column| at_column + 1);
        let end = after.filter(|end| *end >= width / 2).or(blank).unwrap_or(width);
        let tail = rest.split_off(end);
        lines.push(rest.into_iter().collect());
        rest = tail;
    }
    lines.push(rest.into_iter().collect());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Columns;

    fn page(section: Section) -> Document {
        Document { sections: vec![section], ..Document::default() }
    }

    fn words(text: &str, width: u16) -> String {
        let mut all = Section::default();
        all.list(List::behind("-", Layout { gap: 1, ..Layout::default() }, [text]));
        page(all).terminal(width)
    }

    #[test]
    fn lines_keep_the_width_and_hang_under_the_first_word() {
        assert_eq!(words("one two three four five", 10), "- one two\n  three\n  four\n  five\n");
        assert_eq!(words("a /a/very/long/path b", 6), "- a\n  /a/very/long/path\n  b\n");
        assert_eq!(words("", 6), "-\n");
        assert_eq!(words("a\nb\u{1b}", 6), "- a\\nb\\x1b\n");
    }

    #[test]
    fn labels_have_columns_and_what_is_below_them_hangs() {
        let mut all = Section::new("", "FAIL (1)");
        let item = Item::new("acs", "on\u{202e}").and("at", Some("a b")).and("fix", None::<&str>);
        all.item(Layout::columns(5, 1), item);
        all.list(List::behind("Next", Layout::labels(5), ["one", "two"]));
        let text = "FAIL (1)\n  acs   on\\u202e\n        at: a b\nNext: one\n      two\n";
        assert_eq!(page(all).terminal(80), text);
    }

    #[test]
    fn text_behind_a_long_label_begins_further_left() {
        let mut all = Section::default();
        all.item(Layout::labels(0), Item::new("a long label", "one two three four"));
        let all = page(all);
        assert_eq!(all.terminal(20), "a long label: one\n    two three four\n");
        assert_eq!(all.terminal(30), "a long label: one two three\n              four\n");
    }

    #[test]
    fn what_is_safe_already_is_never_cut() {
        let long = "word ".repeat(1000);
        let mut all = Section::default();
        all.paragraph(long.as_str());
        let all = page(all);
        assert!(all.terminal(60).contains("characters in all)"));
        assert_eq!(all.terminal_with(100, 60).split_whitespace().count(), 1000);
        assert!(all.terminal_with(100, 60).lines().all(|line| line.len() <= 60));
    }

    #[test]
    fn a_column_stands_where_its_part_of_the_table_is() {
        let table = Columns::<(&str, Option<u64>)>::new()
            .words("job name", |row| row.0)
            .short("job")
            .figures("rate", |_| Cell::rate(1e9).short("1 G"))
            .part(Part::First)
            .figures("max", |row| row.1.map_or_else(Cell::default, Cell::time))
            .part(Part::Second)
            .figures("none", |_| None::<u64>)
            .if_any()
            .table("", [("a-long-name-of-a-job", Some(1)), ("b", None)]);
        let mut all = Section::default();
        all.table(table);
        let all = page(all);
        let wide = all.terminal(80);
        assert!(wide.starts_with("job name                   rate   max\n---"), "{wide}");
        assert!(!wide.contains("none"), "{wide}");
        let narrow = all.terminal(19);
        assert!(narrow.contains("\n\njob"), "{narrow}");
        assert_eq!(narrow.matches("\nb").count(), 1, "no time, no line: {narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 19), "{narrow}");
    }

    /// Nothing is lost: one value of all rows stands above, and long words have several lines.
    #[test]
    fn a_table_that_is_too_wide_is_condensed_and_then_squeezed() {
        let rows = [("job-host", "host", "io_uring", 1e9), ("job-gds", "gds", "io_uring", 2e9)];
        let table = || {
            Columns::<(&str, &str, &str, f64)>::new()
                .words("job", |row| row.0)
                .spare(true)
                .words("path", |row| row.1)
                .words("engine", |row| row.2)
                .figures("rate", |row| Cell::rate(row.3))
        };
        let last = [("job-a-long-path", "a-long-path of-words", "io_uring", 3e9)];
        let table = table().table("", rows.into_iter().chain(last));
        assert!(table.terminal(80).starts_with("job              path"));
        let condensed = "all: engine io_uring\n\
                         path                       rate\n\
                         -------------------------------\n\
                         host                  954 MiB/s\n\
                         gds                  1.86 GiB/s\n\
                         a-long-path of-words 2.79 GiB/s\n";
        assert_eq!(table.terminal(31), condensed);
        let squeezed = "all: engine\n     io_uring\n\
                        path           rate\n\
                        -------------------\n\
                        host      954 MiB/s\n\
                        gds      1.86 GiB/s\n\
                        a-long-  2.79 GiB/s\n\
                        path of-\n\
                        words\n";
        assert_eq!(table.terminal(19), squeezed);
    }

    #[test]
    fn the_last_words_of_a_wide_table_break_at_blanks() {
        let table = Columns::<(u64, &str)>::new()
            .figures("n", |row| row.0)
            .words("reason", |row| row.1)
            .table("", [(1, "one two three four"), (2, "short")])
            .look(Look::Indented(2));
        let narrow = "  n  reason\n  1  one two\n     three four\n  2  short\n";
        assert_eq!(table.terminal(16), narrow);
        assert_eq!(table.terminal(80).lines().count(), 3);
    }

    #[test]
    fn names_break_after_signs_and_nothing_is_lost() {
        assert_eq!(in_lines("buffered-writes", 14), "buffered-\nwrites");
        assert_eq!(in_lines("short", 10), "short");
        assert_eq!(in_lines("job (partial)", 11), "job \n(partial)");
        assert_eq!(in_lines("a-verylongname", 10), "a-verylong\nname");
        let long = "ééééé_ééééé-a-name-that-goes-on";
        for width in 1..40 {
            let lines = in_lines(long, width);
            assert!(lines.lines().all(|line| line.chars().count() <= width));
            assert_eq!(lines.replace('\n', ""), long);
        }
    }
}
