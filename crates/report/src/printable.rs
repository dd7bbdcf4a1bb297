//! Makes all texts of a record safe to print.

use std::borrow::Cow;
use std::io::Write;

use gpuio_base::units::{is_hidden, printable_short};
use gpuio_record::Record;
use serde_json::Value;

/// The record with every text as [`printable_short`] shows it; the record itself if that changes
/// nothing, which is usual. All texts at once, so that none is forgotten.
pub(crate) fn record(record: &Record) -> Cow<'_, Record> {
    let mut look = Look { odd: false, run: 0 };
    let looked = serde_json::to_writer(&mut look, record);
    if looked.is_ok() && !look.odd {
        return Cow::Borrowed(record);
    }
    let shown = serde_json::to_value(record).and_then(|mut value| {
        show(&mut value);
        serde_json::from_value(value)
    });
    // A record with a figure that is not finite has no JSON that reads back. It keeps its layout;
    // control characters are removed from the finished text.
    shown.map_or(Cow::Borrowed(record), Cow::Owned)
}

fn show(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = printable_short(text) {
                *text = shown;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(show),
        // Keys are gpuio's own names.
        Value::Object(fields) => fields.values_mut().for_each(show),
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
