//! HTML: fragments of a page, and a page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::units::markup;

use crate::document::cell::Cell;
use crate::document::table::{Column, Table};
use crate::document::{Block, Document, Item, List, Section};

/// Nothing is fetched, framed, sent or run, but for what `Page::allows` adds.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; \
                      base-uri 'none'";
/// The style of a page that has no other.
const STYLE: &str = include_str!("../../assets/document.css");
/// Names of what an item concerns.
const NAMES: usize = 100;

/// A page of HTML around its body: one file that loads nothing.
#[derive(Debug, Clone, Copy)]
pub struct Page<'p> {
    /// Who wrote it: `gpuio VERB`.
    pub generator: &'p str,
    pub title: &'p str,
    /// The further rights of the page: `script-src 'unsafe-inline'`.
    pub allows: &'p str,
    pub styles: &'p [&'p str],
    pub body: &'p str,
}

impl Page<'_> {
    pub fn html(&self) -> String {
        let between = if self.allows.is_empty() { "" } else { "; " };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}{between}{}\">\n\
             <meta name=\"generator\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            self.allows,
            self.generator,
            markup(self.title),
            self.styles.concat(),
            self.body
        )
    }
}

impl Document {
    /// The document as a page by this verb.
    pub fn page(&self, verb: &str) -> String {
        let title = self.title.plain();
        let body = format!(
            "<h1>{}</h1>\n{}<footer><p>Written by gpuio {verb}. This file needs no network.</p>\
             </footer>\n",
            self.title.html(),
            fragment(&self.sections)
        );
        let narrow = narrow(&self.sections);
        let (title, styles) = (title.as_str(), &[STYLE, narrow.as_str()]);
        Page { generator: &format!("gpuio {verb}"), title, allows: "", styles, body: &body }.html()
    }
}

/// Rules for a narrow screen, where each row of a table is a paragraph of cells behind their heads:
/// a rule for each head of each kind of table.
fn narrow(sections: &[Section]) -> String {
    let mut rules = BTreeSet::new();
    let mut rest: Vec<&Block> = sections.iter().flat_map(|one| &one.blocks).collect();
    while let Some(block) = rest.pop() {
        match block {
            Block::Section(inner) => rest.extend(&inner.blocks),
            Block::Table(table) => {
                let table = &table.seen();
                let kind = kind(table);
                rules.extend(table.columns.iter().enumerate().skip(1).map(|(nth, column)| {
                    let (nth, head) = (nth + 1, in_style(&column.head));
                    format!(
                        "  [data-kind=\"{kind}\"] td:nth-child({nth})::before \
                         {{ content: \"{head} \"; }}\n"
                    )
                }));
            }
            _ => {}
        }
    }
    let rules: String = rules.into_iter().collect();
    match rules.is_empty() {
        true => rules,
        false => format!("@media screen and (max-width: 640px) {{\n{rules}}}\n"),
    }
}

/// The name of tables with the same heads.
fn kind(table: &Table) -> String {
    let heads: Vec<&str> = table.columns.iter().map(|column| column.head.as_ref()).collect();
    let plain = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '-' };
    heads.join(" ").chars().map(plain).collect()
}

/// Text in a string of CSS, whatever signs it has (CSS Syntax, "Escaping").
fn in_style(text: &str) -> String {
    let sign = |sign: char| match sign.is_ascii_alphanumeric() || sign == ' ' {
        true => sign.to_string(),
        false => format!("\\{:x} ", u32::from(sign)),
    };
    text.chars().map(sign).collect()
}

/// Sections as markup for the body of a page.
pub fn fragment<'s>(sections: impl IntoIterator<Item = &'s Section>) -> String {
    let mut out = String::new();
    let shown = sections.into_iter().filter(|section| !section.is_empty());
    shown.for_each(|one| section(&mut out, one, 2));
    out
}

// Writing to a String cannot fail, here and below.
fn section(out: &mut String, of: &Section, level: usize) {
    let (key, title) = (of.key, of.title.html());
    let open = if of.fold == Some(true) { " open" } else { "" };
    let _ = match (of.fold, key, title.as_str()) {
        (None, "", "") => Ok(()),
        (None, "", title) => writeln!(out, "<h{level}>{title}</h{level}>"),
        (None, key, title) => writeln!(
            out,
            "<section id=\"{key}\" aria-labelledby=\"h-{key}\">\n<h2 id=\"h-{key}\">{title}</h2>"
        ),
        (Some(_), "", title) => writeln!(out, "<details{open}><summary>{title}</summary>"),
        (Some(_), key, title) => writeln!(
            out,
            "<details class=\"fold\" id=\"{key}\"{open}><summary><h2>{title}</h2></summary>"
        ),
    };
    of.blocks.iter().for_each(|one| block(out, one, level));
    out.push_str(match (of.fold, key) {
        (None, "") => "",
        (None, _) => "</section>\n",
        (Some(_), _) => "</details>\n",
    });
}

fn block(out: &mut String, of: &Block, level: usize) {
    match of {
        Block::Paragraph { text, class } => {
            let _ = writeln!(out, "<p{}>{}</p>", attribute("class", class), text.html());
        }
        Block::List(all) => list(out, all),
        Block::Table(all) => table(out, all),
        Block::Lines(text) => {
            // Line by line: `markup` makes escapes of line feeds.
            let lines: Vec<_> = text.trim_end().lines().map(markup).collect();
            let _ = writeln!(out, "<pre>{}</pre>", lines.join("\n"));
        }
        Block::Markup(markup) => out.push_str(markup),
        Block::Section(inner) => section(out, inner, level + 1),
    }
}

/// An attribute, unless it is empty.
fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{}\"", markup(value)) }
}

fn list(out: &mut String, all: &List) {
    let (tag, class) = (if all.facts { "dl" } else { "ul" }, attribute("class", all.class));
    let _ = writeln!(out, "<{tag}{class}>");
    for item in &all.items {
        let (text, rest) = (item.text.html(), rest(item));
        let label = markup(&item.label);
        let _ = match all.facts {
            true => writeln!(out, "<dt>{label}</dt><dd>{text}{rest}</dd>"),
            false => {
                let class = attribute("class", item.class);
                let label = match label.as_ref() {
                    "" => String::new(),
                    label => format!("<strong>{label}</strong> "),
                };
                writeln!(out, "<li{class}>{label}{text}{rest}</li>")
            }
        };
    }
    let _ = writeln!(out, "</{tag}>");
}

/// The things that an item concerns, and the text below it.
fn rest(item: &Item) -> String {
    let mut out = match item.about.as_slice() {
        [] => String::new(),
        [one] => format!(" <span class=\"quiet\">{}</span>", markup(one)),
        many => {
            let names: Vec<_> = many.iter().take(NAMES).map(|name| markup(name)).collect();
            let more = match many.len().saturating_sub(NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "<details><summary>{} of them</summary><p class=\"quiet\">{}{more}</p></details>",
                many.len(),
                names.join(", ")
            )
        }
    };
    if !item.items.is_empty() {
        list(&mut out, &List { items: item.items.clone(), ..List::default() });
    }
    out
}

fn table(out: &mut String, of: &Table) {
    let of = &of.seen();
    let name = markup(&of.name);
    let (id, class) = (attribute("id", of.id), attribute("class", of.class));
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{name}\" \
         data-kind=\"{}\">\n<table{id}{class}><thead><tr>",
        kind(of)
    );
    for column in &of.columns {
        let key = if of.id.is_empty() { "" } else { column.key.as_ref() };
        let _ = write!(
            out,
            "<th scope=\"col\"{}{}{}>{}</th>",
            attribute("class", if column.figures { "n" } else { "" }),
            attribute("data-key", key),
            attribute("title", &column.title),
            markup(&column.head)
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &of.rows {
        let mark = row.mark.as_ref().map_or_else(String::new, |mark| attribute("data-path", mark));
        let _ = write!(out, "<tr{mark}>");
        if let Some(over) = &row.over {
            let (all, over) = (of.columns.len(), markup(over.trim()));
            let _ = writeln!(out, "<th scope=\"row\" colspan=\"{all}\">{over}</th></tr>");
            continue;
        }
        for (nth, (column, one)) in of.columns.iter().zip(&row.cells).enumerate() {
            cell(out, column, one, nth == 0);
        }
        out.push_str("</tr>\n");
        // Over the whole width: in a column of its own a sentence would be a tower.
        for note in row.cells.iter().map(|cell| &cell.note).filter(|note| !note.is_empty()) {
            let (all, note) = (of.columns.len(), markup(note));
            let _ = writeln!(
                out,
                "<tr class=\"note\"{mark}><td colspan=\"{all}\"><p class=\"quiet\">{note}</p></td>\
                 </tr>"
            );
        }
    }
    out.push_str("</tbody></table>\n</div>\n");
}

fn cell(out: &mut String, column: &Column, of: &Cell, first: bool) {
    let class = match (column.figures, of.class) {
        (true, "") => "n".to_owned(),
        (true, class) => format!("n {class}"),
        (false, class) => class.to_owned(),
    };
    // The exact value of what is rounded.
    let exact = of.value.to_string();
    let rounded = of.value.is_number() && of.text.plain() != exact;
    let exact = if rounded { exact } else { String::new() };
    let title = if of.because.is_empty() { &exact } else { &of.because };
    let (tag, scope) = if first { ("th", " scope=\"row\"") } else { ("td", "") };
    let _ = write!(
        out,
        "<{tag}{scope}{}{}>{}{}</{tag}>",
        attribute("class", &class),
        attribute("title", title),
        of.text.html(),
        of.picture
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Columns;

    #[test]
    fn cells_have_their_heads_on_a_narrow_screen_and_no_head_ends_the_style() {
        let columns = Columns::<u64>::new().words("load", |_| "a").figures("</style>\"", |n| *n);
        let mut page = Document::new("t");
        page.begin("", "").table(columns.table("", [7]));
        let html = page.page("show");
        let rule = "[data-kind=\"load---style--\"] td:nth-child(2)::before { content: \"";
        let (_, head) = html.split_once(rule).expect("a rule for the second column");
        assert!(head.starts_with("\\3c \\2f style\\3e \\22  \"; }"), "{head}");
        assert!(html.contains("data-kind=\"load---style--\">"), "{html}");
        assert_eq!(html.matches("</style>").count(), 1, "{html}");
    }
}
