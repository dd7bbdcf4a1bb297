//! Values for programs: JSON, CSV.

use crate::units::csv_text;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::document::table::Table;
use crate::document::{Block, Document, Item, List, Section, Text};

/// A value as JSON of several lines, with a line feed at its end. A number that is not finite is
/// `null`; what has a key that is no text is nothing.
pub fn json_of(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

impl Document {
    /// The document as JSON: rows of tables by the keys of their columns, exact and in base units
    /// (bytes, bytes per second, nanoseconds), `null` where there is no value.
    pub fn json(&self) -> String {
        let sections: Vec<Value> = self.shown().map(section).collect();
        json_of(&json!({ "title": self.title.plain(), "sections": sections }))
    }

    /// The tables as CSV: a line of keys, then the rows, exact and in base units; an empty line
    /// between tables. A document without a table gives its lists, a row for each text.
    pub fn csv(&self) -> String {
        let mut all = Vec::new();
        self.shown().for_each(|section| tables(section, &mut all));
        let texts: Vec<String> = all.iter().map(|table| table_csv(table)).collect();
        if !texts.is_empty() {
            return texts.join("\n");
        }
        let mut lines = vec![["section", "label", "detail", "text"].map(str::to_owned).to_vec()];
        self.shown().for_each(|section| list_rows(section, &mut lines));
        csv_of(lines)
    }
}

fn section(of: &Section) -> Value {
    let block = |one: &Block| match one {
        Block::Paragraph { text, .. } => Some(text.plain().into()),
        Block::Lines(text) => Some(text.as_str().into()),
        Block::List(all) => {
            Some(json!({ "list": all.items.iter().map(item).collect::<Vec<Value>>() }))
        }
        Block::Table(all) => Some(json!({ "table": all.name, "rows": rows(all) })),
        Block::Section(inner) => Some(section(inner)),
        Block::Markup(_) => None,
    };
    let blocks: Vec<Value> = of.blocks.iter().filter_map(block).collect();
    json!({ "section": of.title.plain(), "blocks": blocks })
}

fn item(of: &Item) -> Value {
    let mut value = json!({ "label": of.label.trim(), "text": of.text.plain() });
    if !of.about.is_empty() {
        value["about"] = json!(of.about);
    }
    if !of.items.is_empty() {
        value["list"] = of.items.iter().map(item).collect();
    }
    value
}

fn rows(of: &Table) -> Vec<Value> {
    let keys = of.columns.iter().map(|column| column.key.to_string());
    let row = |cells: &[crate::document::Cell]| -> Map<String, Value> {
        keys.clone().zip(cells.iter().map(|cell| cell.value.clone())).collect()
    };
    of.rows.iter().filter(|one| one.over.is_none()).map(|one| row(&one.cells).into()).collect()
}

fn tables<'d>(of: &'d Section, all: &mut Vec<&'d Table>) {
    for block in &of.blocks {
        match block {
            Block::Table(table) => all.push(table),
            Block::Section(inner) => tables(inner, all),
            _ => {}
        }
    }
}

fn table_csv(of: &Table) -> String {
    let of = &of.only(|_, cells| !crate::document::terminal::drawn(cells));
    let mut lines: Vec<Vec<String>> =
        vec![of.columns.iter().map(|column| column.key.to_string()).collect()];
    let field = |cell: &crate::document::Cell| match &cell.value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let rows = of.rows.iter().filter(|row| row.over.is_none());
    lines.extend(rows.map(|row| row.cells.iter().map(field).collect()));
    csv_of(lines)
}

/// Lines of CSV. Fields are quoted as in RFC 4180, and no text is a formula ([`csv_text`]).
pub fn csv_of<L: IntoIterator<Item = String>>(lines: impl IntoIterator<Item = L>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for line in lines {
        // Writing to memory cannot fail.
        let _ = writer.write_record(line.into_iter().map(|field| csv_text(&field).into_owned()));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn list_rows(of: &Section, lines: &mut Vec<Vec<String>>) {
    let title = of.title.plain();
    let mut row = |label: &str, detail: &str, text: &Text| {
        lines.push([title.as_str(), label.trim(), detail, &text.plain()].map(str::to_owned).into());
    };
    for block in &of.blocks {
        match block {
            Block::List(List { items, .. }) => {
                let mut label = "";
                for item in items {
                    label = if item.label.is_empty() { label } else { &item.label };
                    row(label, "", &item.text);
                    item.items.iter().for_each(|inner| row(label, &inner.label, &inner.text));
                }
            }
            Block::Paragraph { text, .. } => row("", "", text),
            _ => {}
        }
    }
    for block in &of.blocks {
        if let Block::Section(inner) = block {
            list_rows(inner, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::csv_of;

    #[test]
    fn another_reader_gets_the_fields_back() {
        let lines = [&["job", "path"][..], &["a,\"b\"\n", "=1+1", ""]];
        let text = csv_of(lines.map(|line| line.iter().map(|&field| field.to_owned())));
        assert_eq!(text, "job,path\n\"a,\"\"b\"\"\\n\",'=1+1,\n");
        let mut reader = csv::ReaderBuilder::new();
        let mut rows = reader.has_headers(false).flexible(true).from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
        assert_eq!(rows[1], vec!["a,\"b\"\\n", "'=1+1", ""]);
    }
}
