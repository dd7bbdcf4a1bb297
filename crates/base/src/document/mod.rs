//! The output of a verb, and the renderers that print it.
//!
//! A [`Document`] has sections; a [`Section`] has paragraphs, lists, tables, texts as they are, and
//! sections. Verbs build it out of values; here are the only places that align columns, break
//! lines, and write markup: `terminal` (at a width), `markdown`, `html` (a fragment and a page),
//! and `data` (JSON and CSV, which have values, not texts). [`FORMATS`] lists them.
//!
//! - A table never has columns by position: [`Columns`] declares each with its key, its heads, how
//!   it is aligned, what its cells say, and which of two tables it goes to where one does not fit.
//! - A [`Cell`] is typed: text, a number of bytes, a rate, a time, a share, absent or empty. A
//!   terminal shows three digits, JSON and CSV have the value.
//! - Text may come from outside: every renderer makes it safe for its output
//!   (`crate::units`). Only [`Cell::picture`] and [`Block::Markup`] take markup, which is the
//!   source's own.
//!
//! Pure. It must not hold the contents of a document, or the screen of `top`, whose columns keep
//! their widths from one interval to the next (`gpuio_watch`).
//!
//! To add a format for all verbs: a renderer and a row of [`FORMATS`]. To add a kind of block: a
//! variant of [`Block`], and what each renderer makes of it.

mod cell;
mod data;
mod format;
mod grouped;
mod html;
mod markdown;
mod markdown_page;
mod table;
mod terminal;
mod text;

pub use cell::Cell;
pub use data::{csv_of, json_of};
pub use format::{FORMATS, Format, by_extension, find};
pub use grouped::{first, grouped, unique};
pub use html::{Page, fragment};
pub use table::{Column, Columns, Look, Part, Table};
pub use text::{Text, Tone};

/// A whole output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    pub title: Text,
    pub sections: Vec<Section>,
}

/// A part of a document. A terminal has an empty line between sections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Its name for links and programs; empty for none.
    pub key: &'static str,
    /// Empty for none.
    pub title: Text,
    /// On a page: folded, and whether it is open.
    pub fold: Option<bool>,
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Lines break where the width demands.
    Paragraph {
        text: Text,
        /// How a page emphasizes it.
        class: &'static str,
    },
    List(List),
    Table(Table),
    /// Lines as they are: a command, a job file.
    Lines(String),
    /// Markup of the source's own, for a page alone: no text from outside may be in it.
    Markup(String),
    Section(Section),
}

/// Labels and texts: facts, findings, notes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List {
    pub items: Vec<Item>,
    /// Whether items are facts of one thing, each with its label.
    pub facts: bool,
    /// How a page emphasizes it.
    pub class: &'static str,
    pub layout: Layout,
}

/// Where a terminal puts labels and texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// Blanks before a label.
    pub indent: usize,
    /// Characters to which labels are filled up.
    pub column: usize,
    /// Blanks between a label and its text.
    pub gap: usize,
    /// Whether a colon follows a label.
    pub colon: bool,
    /// By how much lines after the first are indented further than the text.
    pub hang: usize,
    /// Whether lines may be as long as those of tables.
    pub wide: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Item {
    /// Empty where the text goes on with the label above.
    pub label: String,
    pub text: Text,
    /// The things that it concerns, by name.
    pub about: Vec<String>,
    /// How a page emphasizes it.
    pub class: &'static str,
    pub items: Vec<Item>,
}

impl Item {
    pub fn new(label: impl Into<String>, text: impl Into<Text>) -> Item {
        Item { label: label.into(), text: text.into(), ..Item::default() }
    }

    /// With a further label and text below it, if there is one.
    #[must_use]
    pub fn and<T: Into<Text>>(mut self, label: &str, text: Option<T>) -> Item {
        self.items.extend(text.map(|text| Item::new(label, text)));
        self
    }
}

impl List {
    pub fn new(layout: Layout, items: impl IntoIterator<Item = Item>) -> List {
        List { items: items.into_iter().collect(), layout, ..List::default() }
    }

    /// Texts without labels.
    pub fn of<T: Into<Text>>(indent: usize, texts: impl IntoIterator<Item = T>) -> List {
        let layout = Layout { indent, ..Layout::default() };
        List::new(layout, texts.into_iter().map(|text| Item::new("", text)))
    }

    /// Texts behind a label that stands once.
    pub fn behind<T: Into<Text>>(
        label: &str,
        layout: Layout,
        texts: impl IntoIterator<Item = T>,
    ) -> List {
        let label = |nth: usize| if nth == 0 { label } else { "" };
        let items = texts.into_iter().enumerate();
        List::new(layout, items.map(|(nth, text)| Item::new(label(nth), text)))
    }
}

impl Layout {
    /// `label: text`, with labels filled up to `column`.
    pub fn labels(column: usize) -> Layout {
        Layout { column, gap: 1, colon: true, ..Layout::default() }
    }

    #[must_use]
    pub fn wide(self) -> Layout {
        Layout { wide: true, ..self }
    }

    /// `  label  text`, with labels filled up to `column`.
    pub fn columns(column: usize, gap: usize) -> Layout {
        Layout { indent: 2, column, gap, ..Layout::default() }
    }
}

impl Section {
    pub fn new(key: &'static str, title: impl Into<Text>) -> Section {
        Section { key, title: title.into(), ..Section::default() }
    }

    /// Folded on a page, and whether it is open there.
    #[must_use]
    pub fn fold(self, open: bool) -> Section {
        Section { fold: Some(open), ..self }
    }

    pub fn paragraph(&mut self, text: impl Into<Text>) -> &mut Section {
        self.emphasized("", text)
    }

    pub fn emphasized(&mut self, class: &'static str, text: impl Into<Text>) -> &mut Section {
        self.push(Block::Paragraph { text: text.into(), class })
    }

    /// Nothing if it has no row.
    pub fn table(&mut self, table: Table) -> &mut Section {
        if table.is_empty() { self } else { self.push(Block::Table(table)) }
    }

    /// Nothing if it has no item.
    pub fn list(&mut self, list: List) -> &mut Section {
        if list.items.is_empty() { self } else { self.push(Block::List(list)) }
    }

    /// A line, or several of its kind, that belong to a label.
    pub fn item(&mut self, layout: Layout, item: Item) -> &mut Section {
        self.list(List::new(layout, [item]))
    }

    pub fn push(&mut self, block: Block) -> &mut Section {
        self.blocks.push(block);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl Document {
    pub fn new(title: impl Into<Text>) -> Document {
        Document { title: title.into(), sections: Vec::new() }
    }

    /// Begins a section; without a block it is not shown.
    pub fn begin(&mut self, key: &'static str, title: impl Into<Text>) -> &mut Section {
        let at = self.sections.len();
        self.sections.push(Section::new(key, title));
        &mut self.sections[at]
    }

    pub fn push(&mut self, section: Section) -> &mut Document {
        self.sections.push(section);
        self
    }

    /// Those that have a block.
    fn shown(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| !section.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "=<img src=x onerror=alert(1)>|[a](javascript:b) https://c.d `\n# e\u{1b}[2J\u{202e},\"";

    /// Every text of it is hostile.
    fn hostile(tones: &[Tone]) -> Document {
        let text = tones.iter().fold(Text::default(), |text, tone| text.and(*tone, HOSTILE));
        let mut section = Section::new("key", text.clone()).fold(true);
        section.paragraph(text.clone());
        let item = Item { about: vec![HOSTILE.to_owned(); 9], ..Item::new(HOSTILE, text.clone()) };
        let item = item.and(HOSTILE, Some(HOSTILE));
        section.item(Layout::labels(8), item.clone());
        section.list(List { facts: true, ..List::new(Layout::columns(3, 1), [item]) });
        let table = Columns::<()>::new()
            .mark(|()| HOSTILE.to_owned())
            .words(HOSTILE, |()| Cell::from(HOSTILE).short(HOSTILE).note(HOSTILE).because(HOSTILE))
            .title(HOSTILE)
            .figures("n", |()| Cell::bytes(1 << 30))
            .words("text", move |()| Cell::from(text.clone()));
        section.table(table.table(HOSTILE, [()]).id("rows"));
        section.push(Block::Lines(format!("{}\n```\n<b>", HOSTILE.replace('\n', " "))));
        let mut page = Document::new(HOSTILE);
        page.push(section.clone());
        section.fold = None;
        section.push(Block::Section(section.clone()));
        page.push(section);
        page
    }

    #[test]
    fn no_format_takes_a_text_for_more_than_a_text() {
        let page = hostile(&[Tone::Code, Tone::StrongCode, Tone::Plain, Tone::Good]);
        for format in FORMATS {
            let text = (format.render)(&page, "test", 80);
            assert!(text.ends_with('\n'), "{}", format.name);
            assert!(!text.contains(['\u{1b}', '\u{202e}']) || format.name == "json", "{text}");
            assert!(!text.contains("\n# e"), "{}: {text}", format.name);
        }
    }

    #[test]
    fn no_text_is_markup() {
        let tones = [Tone::Plain, Tone::Strong, Tone::Quiet, Tone::Aside, Tone::Good, Tone::Bad];
        let html = hostile(&tones).page("test");
        assert!(!html.contains("<img") && !html.contains("<b>"), "{html}");
        assert!(html.contains("&lt;img src=x"));
        assert_eq!(html.matches("<table id=\"rows\"").count(), 3);
        let mut lines = false;
        for line in hostile(&tones).markdown().lines() {
            match line.starts_with("````") {
                true => lines = !lines,
                false => {
                    assert!(lines || !line.contains("<img") && !line.contains("://"), "{line}")
                }
            }
        }
        assert!(!lines);
    }

    #[test]
    fn values_are_exact_where_programs_read_them() {
        let table = Columns::<u64>::new()
            .words("name", |_| HOSTILE)
            .figures("moved B", |bytes| Cell::bytes(*bytes))
            .figures("time", |_| None::<Cell>)
            .figures("part", |_| Cell::percent(12.345, 1));
        let mut section = Section::new("", "one");
        section.table(table.table("t", [1_234_567_u64]));
        let page = Document { sections: vec![section], ..Document::default() };
        let text = page.csv();
        assert!(text.starts_with("name,moved_b,time,part\n\"'=<img "), "{text}");
        assert!(text.ends_with(",1234567,,12.345\n"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&page.json()).unwrap();
        let row = &json["sections"][0]["blocks"][0]["rows"][0];
        assert_eq!((&row["moved_b"], &row["name"]), (&1_234_567.into(), &HOSTILE.into()));
        assert!(row["time"].is_null());
        assert!(page.terminal(400).contains("1.18 MiB"));
    }

    #[test]
    fn lists_are_rows_where_there_is_no_table() {
        let mut section = Section::new("", "FAIL (1)");
        let item = Item::new("acs", "on").and("fix", Some("turn it off"));
        section.list(List::new(Layout::columns(5, 1), [item, Item::new("", "still on")]));
        let page = Document { sections: vec![section], ..Document::default() };
        assert_eq!(
            page.csv(),
            "section,label,detail,text\nFAIL (1),acs,,on\nFAIL (1),acs,fix,turn it off\n\
             FAIL (1),acs,,still on\n"
        );
        assert_eq!(
            page.markdown(),
            "## FAIL (1)\n\n- acs: on\n  - fix: turn it off\n  - still on\n"
        );
    }

    /// A job of one name runs on several paths: what tells them apart is said.
    #[test]
    fn rows_of_one_name_are_told_apart_in_remarks() {
        let remarks = |rows: Vec<[&'static str; 3]>| {
            let table = Columns::<[&'static str; 3]>::new()
                .words("job", |row| row[0])
                .figures("n", |_| 1_u32)
                .words("path", |row| row[1])
                .words("taken", |row| match row[2] {
                    "counted" => Cell::from(row[2]).because("by counters"),
                    other => Cell::from(other).note(other),
                });
            let mut section = Section::default();
            section.table(table.table("t", rows));
            let text = Document { sections: vec![section], ..Document::default() }.markdown();
            text.split_once("\n\n").unwrap().1.to_owned()
        };
        let two = [["a", "host", "slow"], ["a", "staged", "slow"], ["b", "host", "slow"]];
        let notes = "- **a, host**: slow\n- **a, staged**: slow\n- **b**: slow\n";
        assert_eq!(remarks(two.to_vec()), notes);
        // Rows are counted, and not their names.
        let mut six = vec![["a", "host", "counted"]; 6];
        assert_eq!(remarks(six.clone()), "- **all rows**: by counters\n");
        six.push(["b", "host", ""]);
        assert_eq!(remarks(six), "- **a; and 5 more**: by counters\n");
    }

    #[test]
    fn remarks_and_reasons_of_cells_are_below_a_table_in_markdown() {
        let table = Columns::<&str>::new()
            .words("load", |load| Cell::from(*load).note("slow"))
            .words("path", |_| Cell::from("direct").because("by counters"));
        let mut section = Section::default();
        section.table(table.table("t", ["a", "b"]));
        let page = Document { sections: vec![section], ..Document::default() };
        assert_eq!(
            page.markdown(),
            "| load | path |\n| --- | --- |\n| a | direct |\n| b | direct |\n\n- **a**: slow\n\
             - **b**: slow\n- **all rows**: by counters\n"
        );
        assert!(page.page("test").contains("<p class=\"quiet\">slow</p>"));
    }
}
