//! Files of figures and of described systems: `[kind name]` headers and `key = value` lines.

use std::fmt;

/// An error in a file, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// Name of the file or option.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The error, and the accepted form.
    pub what: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.what)
    }
}

impl std::error::Error for FileError {}

#[derive(Debug, Clone)]
pub(crate) struct Section<'t> {
    /// First word of the header.
    pub(crate) kind: &'t str,
    /// The rest of the header, empty where there is none.
    pub(crate) name: &'t str,
    /// The header's position.
    pub(crate) line: u32,
    pub(crate) entries: Vec<Entry<'t>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'t> {
    pub(crate) key: &'t str,
    pub(crate) value: &'t str,
    pub(crate) line: u32,
    /// Columns of key and value.
    pub(crate) columns: (u32, u32),
}

/// Reads sections. A line is a header, `key = value`, blank, or a comment (`#` or `;` first).
/// Comments behind a value are none: models may have a `#`.
pub(crate) fn sections<'t>(file: &str, text: &'t str) -> Result<Vec<Section<'t>>, FileError> {
    let mut sections: Vec<Section<'t>> = Vec::new();
    for (text, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().zip(1..) {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let fail = |at: &str, what: String| error(file, line, column(text, at), what);
        if let Some(header) = trimmed.strip_prefix('[') {
            let Some(inside) = header.strip_suffix(']') else {
                let end = &trimmed[trimmed.len()..];
                return Err(fail(end, "the header lacks its closing ]".to_owned()));
            };
            let (kind, name) =
                inside.trim().split_once(char::is_whitespace).unwrap_or((inside.trim(), ""));
            sections.push(Section { kind, name: name.trim(), line, entries: Vec::new() });
            continue;
        }
        let Some((key, value)) = trimmed.split_once('=') else {
            return Err(fail(trimmed, "neither [section] nor key = value".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let Some(section) = sections.last_mut() else {
            return Err(fail(key, format!("{key} is before any [section]")));
        };
        if value.is_empty() {
            return Err(fail(trimmed, format!("{key} has no value")));
        }
        if let Some(before) = section.entries.iter().find(|before| before.key == key) {
            return Err(fail(key, format!("{key} is in line {} already", before.line)));
        }
        let columns = (column(text, key), column(text, value));
        section.entries.push(Entry { key, value, line, columns });
    }
    Ok(sections)
}

fn column(line: &str, part: &str) -> u32 {
    let offset = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let before = line.get(..offset.min(line.len())).unwrap_or(line);
    u32::try_from(before.chars().count()).map_or(u32::MAX, |count| count.saturating_add(1))
}

pub(crate) fn error(file: &str, line: u32, column: u32, what: String) -> FileError {
    FileError { file: file.to_owned(), line, column, what }
}

impl Entry<'_> {
    /// An error about the value; `at` is an offset in it in bytes.
    pub(crate) fn bad(&self, file: &str, at: usize, what: impl fmt::Display) -> FileError {
        let before = self.value.get(..at).unwrap_or(self.value).chars().count();
        let column = self.columns.1.saturating_add(u32::try_from(before).unwrap_or(u32::MAX));
        error(file, self.line, column, format!("{}: {what}", self.key))
    }

    pub(crate) fn unknown_key(&self, file: &str, known: &[&str]) -> FileError {
        let what = format!("no key {:?} here; there are {}", self.key, known.join(", "));
        error(file, self.line, self.columns.0, what)
    }

    /// A rate in bytes per second.
    pub(crate) fn rate(&self, file: &str) -> Result<f64, FileError> {
        self.above_0(file, gpuio_base::units::parse_bytes_per_second(self.value))
    }

    pub(crate) fn count(&self, file: &str) -> Result<u64, FileError> {
        let count = gpuio_base::units::parse_count(self.value);
        let count = count.map_err(|error| self.bad(file, error.at, &error))?;
        match count {
            0 => Err(self.bad(file, 0, "0 is nothing to count with")),
            count => Ok(count),
        }
    }

    /// I/Os per second.
    pub(crate) fn ios(&self, file: &str) -> Result<f64, FileError> {
        self.above_0(file, gpuio_base::units::parse_count(self.value))
    }

    /// Nanoseconds.
    pub(crate) fn ns(&self, file: &str) -> Result<f64, FileError> {
        self.above_0(file, gpuio_base::units::parse_duration_ns(self.value))
    }

    fn above_0(
        &self,
        file: &str,
        value: Result<u64, gpuio_base::units::UnitError>,
    ) -> Result<f64, FileError> {
        let value = value.map_err(|error| self.bad(file, error.at, &error))?;
        if value == 0 {
            return Err(self.bad(file, 0, "0 would mean that nothing ever moves"));
        }
        let value = value as f64;
        Ok(value)
    }
}
