//! Errors of one key and its value.

use super::Dialect;
use crate::spec::value::shown;

/// A key or value that was not accepted. The job is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No dialect has this key.
    #[error("unknown key '{key}'; {}", advice(.nearest))]
    Unknown {
        /// The key as written, cut to a line.
        key: String,
        /// A similar key.
        nearest: Option<&'static str>,
    },
    /// Known and refused.
    #[error(
        "key '{key}' ({}) is not supported by gpuio: {why}; use instead: {instead}",
        dialect.name()
    )]
    Known {
        /// The key.
        key: &'static str,
        /// The tool that it comes from.
        dialect: Dialect,
        /// Why it is not supported.
        why: &'static str,
        /// The replacement.
        instead: &'static str,
    },
    /// A `cufile.` key that cuFile does not have.
    #[error("cuFile has no key '{key}'; {}", cufile_advice(.nearest))]
    CufileUnknown {
        /// The key after `cufile.`, cut to a line.
        key: String,
        /// Similar cuFile keys, nearest first.
        nearest: Vec<&'static str>,
    },
    /// A value that a cuFile key does not accept.
    #[error("cufile.{key}: {words}")]
    CufileValue {
        /// The key behind `cufile.`.
        key: &'static str,
        /// The error, and the text to write.
        words: String,
    },
    /// A key that needs a value has none.
    #[error("key '{key}' needs a value; write {key}=VALUE, or leave it out")]
    NoValue {
        /// The key.
        key: &'static str,
    },
    /// The value is invalid.
    #[error("value '{}' of '{key}'{}: {meaning}", shown(.value), place(.value, *.at))]
    Value {
        /// The key.
        key: &'static str,
        /// The value as given.
        value: String,
        /// Byte offset in `value` of what does not fit; its length where it ends too early.
        at: usize,
        /// The error, and the text to write.
        meaning: String,
    },
    /// A look-alike of an ASCII sign, as input methods and web pages produce.
    #[error(
        "'{text}' contains '{found}' (U+{:04X}), which only looks like '{plain}'; \
         type the ASCII sign",
        u32::from(*.found)
    )]
    FullWidth {
        /// The key or value as written, cut to a line.
        text: String,
        /// Whether it is in the value (true) or in the key.
        in_value: bool,
        /// Byte offset in that key or value.
        at: usize,
        /// The sign.
        found: char,
        /// The plain character that it looks like.
        plain: char,
    },
}

fn advice(nearest: &Option<&'static str>) -> String {
    match nearest {
        Some(name) => format!("nearest: {name}"),
        None => "no similar key; see docs/job-file.md".to_owned(),
    }
}

fn cufile_advice(nearest: &[&'static str]) -> String {
    match nearest {
        [_, ..] => format!("nearest: cufile.{}", nearest.join(", cufile.")),
        [] => "see docs/check.md; a key of another cuFile release can be set in the file that \
            CUFILE_ENV_PATH_JSON names"
            .to_owned(),
    }
}

/// The position in the value, unless it is the beginning.
fn place(value: &str, at: usize) -> String {
    match value.get(at..) {
        Some("") => ", at its end".to_owned(),
        Some(rest) if at > 0 => format!(", at '{}'", shown(rest)),
        _ => String::new(),
    }
}

/// The first look-alike of an ASCII sign: its byte offset, itself and the ASCII sign.
pub(crate) fn full_width(text: &str) -> Option<(usize, char, char)> {
    text.char_indices().find_map(|(at, c)| Some((at, c, plain(c)?)))
}

fn plain(c: char) -> Option<char> {
    match c {
        // The full-width block repeats ASCII from '!' to '~', in order.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xff01 + 0x21),
        '\u{3000}' | '\u{a0}' => Some(' '),
        '\u{3001}' => Some(','),
        '\u{3002}' => Some('.'),
        '\u{2010}'..='\u{2014}' | '\u{2212}' => Some('-'),
        '\u{2018}' | '\u{2019}' => Some('\''),
        '\u{201c}' | '\u{201d}' => Some('"'),
        _ => None,
    }
}
