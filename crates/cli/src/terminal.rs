//! The terminal on standard output.

use std::io::IsTerminal;

use gpuio_guard::objects::environment;

/// Whether the terminal is said to have no control sequences.
pub(crate) fn is_dumb() -> bool {
    environment::text("TERM").is_some_and(|name| name == "dumb")
}

/// Width of the terminal on standard output, by `COLUMNS` or as it says itself; 120 if it is none.
pub(crate) fn width() -> u16 {
    const PLAIN: u16 = 120;
    if !std::io::stdout().is_terminal() {
        return PLAIN;
    }
    let given = environment::text("COLUMNS").and_then(|columns| columns.parse().ok());
    let own = || ratatui::crossterm::terminal::size().ok().map(|(columns, _)| columns);
    given.or_else(own).filter(|&columns| columns > 0).map_or(PLAIN, |columns: u16| columns.max(60))
}

/// The same of pages whose lines stay whole where no terminal is: programs search them.
pub(crate) fn width_or_whole() -> u16 {
    if std::io::stdout().is_terminal() { width() } else { u16::MAX }
}
