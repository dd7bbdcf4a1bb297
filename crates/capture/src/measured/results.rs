//! Results of load generators in a text of a machine: kept as they stand, for those who read
//! results.

use serde_json::Value;

use crate::{CaptureError, Captured, Kind, json, lines};

/// Results of a tool, line by line as they stand in the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Results {
    /// The tool: `gdsio`, `fio`, `elbencho`.
    pub tool: &'static str,
    /// Its lines.
    pub text: String,
}

pub(crate) const GDSIO: Kind = Kind {
    command: "gdsio",
    gives: "result lines, also wrapped ones, for `gpuio compare`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.contains("XferType:") && text.contains("Throughput:"),
    add: add_gdsio,
};

pub(crate) const FIO: Kind = Kind {
    command: "fio",
    gives: "results as JSON and as the terminal shows them, for `gpuio compare`",
    most_bytes: crate::LOG,
    looks_like: |text| text.lines().any(is_fio) || is_fio_json(text),
    add: add_fio,
};

pub(crate) const ELBENCHO: Kind = Kind {
    command: "elbencho",
    gives: "results as CSV and as the terminal shows them, for `gpuio compare`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| is_elbencho_head(line) || is_csv_head(line)),
    add: add_elbencho,
};

/// More texts of results than people paste.
const MOST: usize = 1000;

fn keep(captured: &mut Captured, tool: &'static str, text: String) {
    if !text.trim().is_empty() && captured.results.len() < MOST {
        captured.results.push(Results { tool, text });
    }
}

fn add_gdsio(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut own = String::new();
    let mut open = false;
    for (index, line) in lines(text) {
        let begins = line.contains("IoType:") || line.contains("XferType:");
        if begins || open {
            own.push_str(line);
            own.push('\n');
            // A line that was wrapped goes on until its time.
            let parts = line.contains("total_time") && line.trim_end().ends_with("secs");
            open = !parts && !line.trim().is_empty();
        } else {
            captured.skip(CaptureError::new(index, line, 0, "IoType: READ XferType: GPUD …"));
        }
    }
    keep(captured, GDSIO.command, own);
    Ok(())
}

/// `seq-read: (g=0): rw=read, bs=…`, which begins fio's text, and `name: (groupid=0, jobs=1): err=
/// 0`.
fn is_fio(line: &str) -> bool {
    line.contains(": (g=") && line.contains("): rw=")
        || line.contains(": (groupid=") && line.contains("jobs=")
}

fn is_fio_json(text: &str) -> bool {
    text.contains("\"fio version\"") && json::find(text, is_fio_page).is_some()
}

fn is_fio_page(value: &Value) -> bool {
    value["fio version"].is_string()
}

fn add_fio(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    if let Some(found) = is_fio_json(text).then(|| json::find(text, is_fio_page)).flatten() {
        let (from, to) = found.lines();
        let own: Vec<&str> = text.lines().skip(from).take(to - from).collect();
        keep(captured, FIO.command, own.join("\n"));
        json::skip_others(text, &found, captured);
        return Ok(());
    }
    let mut own = String::new();
    let mut begun = false;
    for (index, line) in lines(text) {
        begun |= is_fio(line);
        // Everything that fio prints below its first line is indented or has a known beginning.
        let words = line.trim_start();
        let known = [
            "...",
            "fio-",
            "Starting ",
            "Jobs: ",
            "Run status",
            "Disk stats",
            "READ:",
            "WRITE:",
            "MIXED:",
        ];
        let ours = begun
            && (is_fio(line)
                || line.starts_with(' ')
                || known.iter().any(|start| words.starts_with(start)));
        if ours {
            own.push_str(line);
            own.push('\n');
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a line of fio's results"));
        }
    }
    keep(captured, FIO.command, own);
    Ok(())
}

/// `OPERATION   RESULT TYPE         FIRST DONE   LAST DONE`.
fn is_elbencho_head(line: &str) -> bool {
    line.trim_start().starts_with("OPERATION") && line.contains("FIRST DONE")
}

fn is_csv_head(line: &str) -> bool {
    line.starts_with("ISO date,") && line.contains("MiB/s [last]")
}

fn add_elbencho(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut own = String::new();
    let (mut csv, mut begun) = (0, false);
    for (index, line) in lines(text) {
        if is_csv_head(line) {
            csv = line.matches(',').count();
        }
        begun |= is_elbencho_head(line);
        let row = csv > 0 && line.matches(',').count() >= csv;
        // Rows have a colon between name and figures; rulers are of equals signs.
        let ours = row
            || begun
                && (is_elbencho_head(line)
                    || line.contains(" : ")
                    || line.trim_start().starts_with("===")
                    || line.split_once(':').is_some_and(|(_, rest)| rest.starts_with(' ')));
        if ours {
            own.push_str(line);
            own.push('\n');
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a line of elbencho's results"));
        }
    }
    keep(captured, ELBENCHO.command, own);
    Ok(())
}
