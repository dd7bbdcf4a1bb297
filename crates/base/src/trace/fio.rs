//! fio's block traces in text, as `write_iolog` writes them ("Trace file format" in fio's manual).
//!
//! Version 2: `FILE ACTION [OFFSET LENGTH]`, where a `wait` says in its offset, in microseconds,
//! how long after the previous one the next I/Os come. Version 3 has the time of each action before
//! it, in microseconds from the start. There are no durations and no threads.

use std::collections::BTreeMap;

use crate::trace::read::{Place, TraceError, too_many};
use crate::trace::{Call, End, Format, Op, OtherActions, Trace, TraceFile};

/// The error, and the column of the word where it is.
type WordFault = (u64, String);

/// Reads a trace of fio's.
pub(crate) fn read(bytes: &[u8], most: usize) -> Result<Trace, TraceError> {
    let wrong = |line: u64, (column, what): WordFault| {
        let at = Place::Text { line, column };
        TraceError { at, what }
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let lines = good.iter().filter(|byte| **byte == b'\n').count() as u64;
            let last = good.iter().rev().take_while(|byte| **byte != b'\n').count() as u64;
            return Err(wrong(lines + 1, (last + 1, "this is no text".to_owned())));
        }
    };
    let mut lines = text.lines().zip(1_u64..);
    let first = lines.next().map_or("", |(line, _)| line);
    let version = match first.trim_end() {
        "fio version 2 iolog" => 2,
        "fio version 3 iolog" => 3,
        other => {
            let what =
                format!("'{other}': gpuio reads fio version 2 iolog and fio version 3 iolog");
            return Err(wrong(1, (1, what)));
        }
    };
    let mut state = State { version, ..State::default() };
    for (line, number) in lines {
        if !line.trim().is_empty() {
            state.line(line).map_err(|what| wrong(number, what))?;
        }
        if state.calls.len() > most {
            return Err(wrong(number, (1, too_many(most))));
        }
    }
    Ok(Trace {
        format: Format::Fio(version),
        program: None,
        began_unix_ns: 0,
        files: state.files,
        calls: state.calls,
        lost: 0,
        senseless: 0,
        end: End::Whole,
        other: state.other,
    })
}

/// A word of a line, and its column from 1.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    column: u64,
}

impl Word<'_> {
    fn wrong<T>(self, what: String) -> Result<T, WordFault> {
        Err((self.column, what))
    }

    fn number(self) -> Result<u64, WordFault> {
        let text = self.text;
        text.parse().or_else(|_| self.wrong(format!("'{text}' is no whole number of 0 or more")))
    }

    /// Microseconds as nanoseconds.
    fn time(self) -> Result<u64, WordFault> {
        let ns = self.number()?.checked_mul(1000).filter(|ns| *ns <= i64::MAX as u64);
        let past = || self.wrong(format!("a time of {} microseconds is past any run", self.text));
        ns.map_or_else(past, Ok)
    }
}

/// The words of a line; columns count characters.
fn words(line: &str) -> impl Iterator<Item = Word<'_>> {
    line.split_ascii_whitespace().map(|text| {
        let before = text.as_ptr().addr() - line.as_ptr().addr();
        let column = line.get(..before).map_or(0, |before| before.chars().count()) as u64 + 1;
        Word { text, column }
    })
}

#[derive(Default)]
struct State {
    version: u8,
    files: Vec<TraceFile>,
    numbers: BTreeMap<String, u32>,
    calls: Vec<Call>,
    other: OtherActions,
    /// The time of the next action, nanoseconds.
    now_ns: u64,
}

impl State {
    fn line(&mut self, line: &str) -> Result<(), WordFault> {
        let mut words = words(line);
        let end = line.trim_end().chars().count() as u64 + 1;
        if self.version == 3 {
            let time = words.next().map_or_else(|| Err((1, "no time".to_owned())), Word::time)?;
            self.now_ns = time.max(self.now_ns);
        }
        let (Some(name), Some(action)) = (words.next(), words.next()) else {
            return Err((end, format!("'{}' has no file and action", line.trim())));
        };
        let numbers = (words.next(), words.next());
        if let Some(more) = words.next() {
            let text = more.text;
            return more
                .wrong(format!("'{text}' after the length; a name with a blank can't be read"));
        }
        let both = || match numbers {
            (Some(offset), Some(length)) => Ok((offset.number()?, length.number()?)),
            _ => Err((end, format!("{} without offset and length", action.text))),
        };
        match action.text {
            "add" => {
                self.file(name.text);
            }
            "open" | "close" => {}
            "read" | "write" => {
                let op = if action.text == "read" { Op::Read } else { Op::Write };
                let (offset, bytes) = both()?;
                let last = offset.checked_add(bytes).filter(|end| *end <= i64::MAX as u64);
                let past = || {
                    let column = numbers.0.map_or(end, |word| word.column);
                    (column, "offset plus length is past the largest file".to_owned())
                };
                let last = last.ok_or_else(past)?;
                let file = self.file(name.text);
                if let Some(found) = self.files.get_mut(file as usize) {
                    found.size = found.size.max(last);
                }
                let (result, begin_ns) = (bytes.cast_signed(), self.now_ns);
                self.calls.push(Call { op, file, offset, bytes, result, begin_ns, ..Call::NONE });
            }
            "wait" => {
                let none = || Err((end, "wait without a time".to_owned()));
                let pause = numbers.0.map_or_else(none, Word::time)?;
                let after = self.now_ns.saturating_add(pause);
                self.now_ns = if self.version == 2 { after } else { self.now_ns };
            }
            "sync" | "datasync" => self.other.syncs += 1,
            "trim" => self.other.trims += 1,
            other => {
                return action.wrong(format!(
                    "'{other}' is no action; known are add, open, close, read, write, wait, sync, \
                     datasync and trim"
                ));
            }
        }
        Ok(())
    }

    /// The number of a file, which is new or not.
    fn file(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(TraceFile { path: Some(name.to_owned()), ..TraceFile::default() });
        self.numbers.insert(name.to_owned(), number);
        number
    }
}
