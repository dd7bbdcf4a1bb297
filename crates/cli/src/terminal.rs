//! The terminal on standard output.

use std::io::IsTerminal;

use gpuio_guard::objects::environment;

/// Whether the terminal is said to have no control sequences.
pub(crate) fn is_dumb() -> bool {
    environment::text("TERM").is_some_and(|name| name == "dumb")
}

/// Width of text by `COLUMNS`, or as the terminal on standard output says itself; 80 if it is none.
pub(crate) fn width() -> u16 {
    const PLAIN: u16 = 80;
    known().unwrap_or(PLAIN)
}

/// The same of pages whose lines stay whole where nothing says a width and no terminal is: programs
/// search them.
pub(crate) fn width_or_whole() -> u16 {
    let whole = if std::io::stdout().is_terminal() { width() } else { u16::MAX };
    known().unwrap_or(whole)
}

fn known() -> Option<u16> {
    let given = environment::text("COLUMNS").and_then(|columns| columns.parse().ok());
    let is_terminal = std::io::stdout().is_terminal();
    let size = || ratatui::crossterm::terminal::size().ok().map(|(columns, _)| columns);
    let own = || size().filter(|_| is_terminal);
    let known = given.or_else(own).filter(|&columns| columns > 0);
    known.map(|columns: u16| columns.max(60))
}
