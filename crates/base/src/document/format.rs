//! The formats that every document has.

use crate::document::Document;

#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The name after `--format`.
    pub name: &'static str,
    /// The end of file names that selects it.
    pub extension: &'static str,
    /// The document of this verb, a terminal having so many columns.
    pub render: fn(&Document, &'static str, u16) -> String,
}

/// In the order in which help lists them.
pub const FORMATS: &[Format] = &[
    Format { name: "text", extension: "txt", render: |page, _, width| page.terminal(width) },
    Format { name: "json", extension: "json", render: |page, _, _| page.json() },
    Format { name: "markdown", extension: "md", render: |page, _, _| page.markdown() },
    Format { name: "html", extension: "html", render: |page, verb, _| page.page(verb) },
    Format { name: "csv", extension: "csv", render: |page, _, _| page.csv() },
];

pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

pub fn by_extension(extension: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.extension == extension)
}
