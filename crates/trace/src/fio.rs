//! fio's block traces in text, as `write_iolog` writes them ("Trace file format" in fio's manual).
//!
//! Version 2: `FILE ACTION [OFFSET LENGTH]`, where a `wait` says in its offset, in microseconds,
//! how long after the previous one the next I/Os come. Version 3 has the time of each action before
//! it, in microseconds from the start. There are no durations and no threads.

use std::collections::BTreeMap;

use crate::read::{Place, TraceError};
use crate::{Call, End, Format, Op, OtherActions, Trace, TraceFile};

/// Reads a trace of fio's.
pub(crate) fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    let wrong = |line: u64, what: String| TraceError { at: Place::Line(line), what };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let lines = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n');
            return Err(wrong(lines.count() as u64 + 1, "this is no text".to_owned()));
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
            return Err(wrong(1, what));
        }
    };
    let mut state = State { version, ..State::default() };
    for (line, number) in lines {
        if !line.trim().is_empty() {
            state.line(line).map_err(|what| wrong(number, what))?;
        }
    }
    Ok(Trace {
        format: Format::Fio(version),
        program: None,
        began_unix_ns: 0,
        files: state.files,
        calls: state.calls,
        lost: 0,
        end: End::Whole,
        other: state.other,
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
    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        if self.version == 3 {
            self.now_ns = time(words.next().unwrap_or_default())?.max(self.now_ns);
        }
        let (Some(name), Some(action)) = (words.next(), words.next()) else {
            return Err(format!("'{line}' has no file and action"));
        };
        let numbers = (words.next(), words.next());
        if let Some(more) = words.next() {
            return Err(format!("'{more}' after the length; a name with a blank can't be read"));
        }
        let both = || match numbers {
            (Some(offset), Some(length)) => Ok((number(offset)?, number(length)?)),
            _ => Err(format!("{action} without offset and length")),
        };
        match action {
            "add" => {
                self.file(name);
            }
            "open" | "close" => {}
            "read" | "write" => {
                let op = if action == "read" { Op::Read } else { Op::Write };
                let (offset, bytes) = both()?;
                let end = offset.checked_add(bytes).filter(|end| *end <= i64::MAX as u64);
                let end = end.ok_or("offset plus length is past the largest file")?;
                let file = self.file(name);
                if let Some(found) = self.files.get_mut(file as usize) {
                    found.size = found.size.max(end);
                }
                let (result, begin_ns) = (bytes.cast_signed(), self.now_ns);
                self.calls.push(Call { op, file, offset, bytes, result, begin_ns, ..Call::NONE });
            }
            "wait" => {
                let pause = time(numbers.0.unwrap_or_default())?;
                let after = self.now_ns.saturating_add(pause);
                self.now_ns = if self.version == 2 { after } else { self.now_ns };
            }
            "sync" | "datasync" => self.other.syncs += 1,
            "trim" => self.other.trims += 1,
            other => {
                return Err(format!(
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

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is no whole number"))
}

/// Microseconds as nanoseconds.
fn time(text: &str) -> Result<u64, String> {
    let ns = number(text)?.checked_mul(1000).filter(|ns| *ns <= i64::MAX as u64);
    ns.ok_or_else(|| format!("a time of {text} microseconds is past any run"))
}
