//! Makes all texts of a record safe to print.

use std::borrow::Cow;
use std::io::Write;

use gpuio_base::units::{Powers, in_requested, is_hidden, powers, printable_short};
use gpuio_record::Record;
use serde_json::Value;

/// Fields that hold sentences of gpuio's, in which sizes are.
const SENTENCES: [&str; 11] = [
    "after", "before", "detail", "found", "note", "notes", "rule", "sentence", "text", "why",
    "words",
];

/// The record with every text as [`printable_short`] shows it, and sentences in requested units;
/// the record itself if that changes nothing, which is usual. All texts at once, so that none is
/// forgotten.
pub(crate) fn record(record: &Record) -> Cow<'_, Record> {
    let mut look = Look { odd: is_other(), run: 0 };
    let looked = serde_json::to_writer(&mut look, record);
    if looked.is_ok() && !look.odd {
        return Cow::Borrowed(record);
    }
    let shown = serde_json::to_value(record).and_then(|mut value| {
        show("", &mut value);
        serde_json::from_value(value)
    });
    // A record with a figure that is not finite has no JSON that reads back. It keeps its layout;
    // control characters are removed from the finished text.
    shown.map_or(Cow::Borrowed(record), Cow::Owned)
}

/// Whether units are requested that saved sentences may not have.
pub(crate) fn is_other() -> bool {
    powers(Powers::Iec) == powers(Powers::Si)
}

fn show(key: &str, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = printable_short(text) {
                *text = shown;
            }
            if SENTENCES.contains(&key) {
                *text = in_requested(text).into_owned();
            } else if key == "plan_text" {
                // A job file, whose values are exact, with sentences behind it.
                let line = |line| match str::starts_with(line, "# ") {
                    true => in_requested(line),
                    false => Cow::Borrowed(line),
                };
                *text = text.split('\n').map(line).collect::<Vec<_>>().join("\n");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| show(key, value)),
        // Keys are gpuio's own names.
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| show(key, value)),
        _ => {}
    }
}

/// Finds texts that need escaping, in the JSON as it is written. May report one where there is
/// none.
struct Look {
    odd: bool,
    /// Bytes since the last quote.
    run: usize,
}

impl Write for Look {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.odd |= match std::str::from_utf8(bytes) {
            Ok(text) => text.contains(|c| c == '\\' || is_hidden(c)),
            Err(_) => true,
        };
        match bytes.iter().rposition(|byte| *byte == b'"') {
            Some(quote) => self.run = bytes.len() - quote,
            None => self.run += bytes.len(),
        }
        self.odd |= self.run.max(bytes.len()) > gpuio_base::units::MOST_SHOWN;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
