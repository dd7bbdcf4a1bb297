//! Colours of printed text, on a terminal only: NO_COLOR, CLICOLOR and --color decide.
//!
//! Applied behind [`crate::output::fit`], to lines that begin with one of a few words, so that no
//! text from outside can set a colour.

use std::io::IsTerminal;
use std::sync::OnceLock;

use gpuio_drivers::mpi::Launcher;

/// Bold, and the colours that mean something: an error, a warning, a note, something fine.
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[33m";
const CYAN: &str = "\x1b[36m";
const GREEN: &str = "\x1b[32m";
const RESET: &str = "\x1b[0m";

/// Beginnings of lines, and the colour of the beginning.
const BEGINNINGS: [(&str, &str); 27] = [
    ("error:", RED),
    ("warning:", YELLOW),
    ("note:", CYAN),
    ("SOFTWARE GPU:", YELLOW),
    ("PARTIAL:", RED),
    ("FAILED:", RED),
    ("UNFINISHED:", RED),
    ("NOT RUN:", RED),
    ("Your storage", BOLD),
    ("The rate of your storage was not measured", YELLOW),
    ("The fastest way", BOLD),
    ("The only way that ran", BOLD),
    ("Too short", YELLOW),
    ("GDS is active", GREEN),
    ("GDS is not active", YELLOW),
    ("GDS is on", GREEN),
    ("GDS is off", YELLOW),
    ("No path to a GPU", YELLOW),
    ("Verified: all", GREEN),
    ("Verified: a random sample", GREEN),
    ("Verified:", YELLOW),
    ("Record:", BOLD),
    ("Next:", BOLD),
    ("FAIL", RED),
    ("WARN", YELLOW),
    ("PASS", GREEN),
    ("VERDICT", BOLD),
];

/// The request of `--color`.
static REQUESTED: OnceLock<bool> = OnceLock::new();

/// `auto`, `always` or `never`, before anything is printed.
pub(crate) fn request(word: &str) {
    if let Some(on) = [("always", true), ("never", false)].iter().find(|(name, _)| *name == word) {
        let _ = REQUESTED.set(on.1);
    }
}

/// Whether text for this stream is coloured.
pub(crate) fn is_on(stream: &impl IsTerminal) -> bool {
    if let Some(on) = REQUESTED.get() {
        return *on;
    }
    if anstyle_query::no_color() || anstyle_query::clicolor() == Some(false) {
        return false;
    }
    // Launchers of MPI give a rank a terminal of its own, whatever their output goes to.
    anstyle_query::clicolor_force()
        || (stream.is_terminal()
            && anstyle_query::term_supports_ansi_color()
            && Launcher::of_this_process().is_none())
}

/// The text with the beginnings of its lines coloured.
pub(crate) fn painted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        match BEGINNINGS.iter().find(|(begin, _)| line.starts_with(begin)) {
            Some((begin, colour)) => {
                out.push_str(colour);
                out.push_str(begin);
                out.push_str(RESET);
                out.push_str(&line[begin.len()..]);
            }
            None => out.push_str(line),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_beginnings_of_lines_have_a_colour() {
        let text = painted("a warning: b\nwarning: c\nRecord: d\n");
        let expected = "a warning: b\n\x1b[33mwarning:\x1b[0m c\n\x1b[1mRecord:\x1b[0m d\n";
        assert_eq!(text, expected);
        assert_eq!(painted(""), "");
    }
}
