//! Cells: what is shown, and the value behind it.

use crate::units::{human_bytes, human_count, human_decimal_rate, human_ns, human_rate};
use serde_json::Value;

use crate::document::text::Text;

/// Shown where there is no value.
const NONE: &str = "-";

/// A cell of a table. Text, a typed value, absent (`None`, shown as `-`), or empty
/// (`Cell::default`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    pub(crate) text: Text,
    /// In fewer characters.
    pub(crate) short: Option<String>,
    /// The value in JSON and CSV: exact, in base units.
    pub(crate) value: Value,
    /// A remark: below the text on a page, in a list below the table elsewhere.
    pub(crate) note: String,
    /// Why the text says so: shown on demand on a page, below the table elsewhere.
    pub(crate) because: String,
    /// How it is emphasized on a page.
    pub(crate) class: &'static str,
    /// Markup of a picture that the source drew: no text from outside may be in it.
    pub(crate) picture: String,
}

impl From<Text> for Cell {
    fn from(text: Text) -> Cell {
        Cell { value: text.plain().into(), text, ..Cell::default() }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Text::from(text).into()
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Text::from(text).into()
    }
}

impl<C: Into<Cell>> From<Option<C>> for Cell {
    fn from(cell: Option<C>) -> Cell {
        cell.map_or_else(|| Cell { text: NONE.into(), ..Cell::default() }, Into::into)
    }
}

macro_rules! integers {
    ($($number:ty),*) => { $(impl From<$number> for Cell {
        fn from(number: $number) -> Cell {
            Cell::shown(number.to_string(), number)
        }
    })* };
}

integers!(u8, u32, u64, usize);

impl Cell {
    /// A value as the text shows it.
    pub fn shown(text: impl Into<Text>, value: impl Into<Value>) -> Cell {
        Cell { text: text.into(), value: value.into(), ..Cell::default() }
    }

    /// A number of bytes: `2.31 GiB`.
    pub fn bytes(bytes: u64) -> Cell {
        Cell::shown(human_bytes(bytes as f64), bytes)
    }

    /// Bytes per second: `2.31 GiB/s`.
    pub fn rate(bytes_per_s: f64) -> Cell {
        Cell::shown(human_rate(bytes_per_s), bytes_per_s)
    }

    /// The same as links and data sheets count: `2.31 GB/s`.
    pub fn decimal_rate(bytes_per_s: f64) -> Cell {
        Cell::shown(human_decimal_rate(bytes_per_s), bytes_per_s)
    }

    /// Operations per second, or a large count: `98.3 k`.
    pub fn count(count: f64) -> Cell {
        Cell::shown(human_count(count), count)
    }

    /// Nanoseconds: `12.3 µs`.
    pub fn time(ns: u64) -> Cell {
        Cell::shown(human_ns(ns as f64), ns)
    }

    /// A share in per cent, with so many decimals: `12.3 %`.
    pub fn percent(percent: f64, decimals: usize) -> Cell {
        Cell::shown(format!("{percent:.decimals$} %"), percent)
    }

    #[must_use]
    pub fn short(self, short: impl Into<String>) -> Cell {
        Cell { short: Some(short.into()), ..self }
    }

    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Cell {
        Cell { note: note.into(), ..self }
    }

    #[must_use]
    pub fn because(self, because: impl Into<String>) -> Cell {
        Cell { because: because.into(), ..self }
    }

    #[must_use]
    pub fn class(self, class: &'static str) -> Cell {
        Cell { class, ..self }
    }

    /// A picture, whose markup is the source's own; only a page shows it.
    pub fn picture(markup: String) -> Cell {
        Cell { picture: markup, ..Cell::default() }
    }

    /// Whether there is nothing to show, not even that a value is absent.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.picture.is_empty()
    }

    /// Whether it has no value.
    pub(crate) fn is_absent(&self) -> bool {
        self.value.is_null()
    }
}
