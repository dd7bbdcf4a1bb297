//! The state of the screen, and how keys change it.

use std::time::Duration;

use gpuio_watch::{Interval, Row, Table};
use ratatui::crossterm::event::KeyCode;

use super::history::History;

/// Intervals that + and - select.
const STEPS: [Duration; 8] = [
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(60),
];

/// The action after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Draw,
    /// Draw, and start a new interval.
    Again,
    End,
}

/// The screen's state.
pub(super) struct State {
    pub(super) every: Duration,
    pub(super) color: bool,
    pub(super) paused: bool,
    pub(super) interval: Option<Interval>,
    pub(super) history: History,
    /// The machine's name, and the time of the last sample as people here write it.
    pub(super) host: String,
    pub(super) clock: String,
    /// Whether the keys and columns are explained instead of the tables.
    pub(super) help: bool,
    /// The selected table, counted among those with devices.
    pub(super) table: usize,
    /// The first visible device of that table.
    pub(super) first: usize,
    /// The column that its devices are sorted by; `None` for their own order.
    pub(super) sort: Option<usize>,
}

impl State {
    pub(super) fn new(every: Duration, color: bool, host: String) -> State {
        State {
            every,
            color,
            paused: false,
            interval: None,
            history: History::default(),
            host,
            clock: String::new(),
            help: false,
            table: 0,
            first: 0,
            sort: None,
        }
    }

    /// Takes an interval that ended at this time. While paused the tables stay as they are, and
    /// only the history goes on.
    pub(super) fn take(&mut self, interval: Interval, clock: String) {
        self.history.add(&interval);
        if !self.paused {
            (self.interval, self.clock) = (Some(interval), clock);
        }
    }

    pub(super) fn tables(&self) -> Vec<&Table> {
        let all = self.interval.iter().flat_map(|interval| &interval.tables);
        all.filter(|table| !table.rows.is_empty()).collect()
    }

    /// The devices of the nth table in the order of the screen.
    pub(super) fn rows<'t>(&self, nth: usize, table: &'t Table) -> Vec<&'t Row> {
        let mut rows: Vec<&Row> = table.rows.iter().collect();
        if let Some(column) = self.sort.filter(|_| nth == self.table) {
            let figure = |row: &Row| row.figures(table.probe).get(column).copied().flatten();
            // Unknown values come last.
            let key = |row: &Row| figure(row).unwrap_or(f64::NEG_INFINITY);
            rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
        }
        let first = if nth == self.table { self.first } else { 0 };
        rows.drain(..first.min(rows.len().saturating_sub(1)));
        rows
    }

    pub(super) fn key(&mut self, key: KeyCode) -> Act {
        let tables = self.tables();
        let (count, table) = (tables.len(), tables.get(self.table));
        let rows = table.map_or(0, |table| table.rows.len());
        let figures = table.map_or(0, |table| table.probe.figures.len());
        match key {
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Char('q') | KeyCode::Esc => return Act::End,
            KeyCode::Tab | KeyCode::Right => self.go_to((self.table + 1) % count.max(1)),
            KeyCode::BackTab | KeyCode::Left => {
                self.go_to((self.table + count.max(1) - 1) % count.max(1));
            }
            KeyCode::Down => self.first = (self.first + 1).min(rows.saturating_sub(1)),
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::Char('s') => {
                let next = self.sort.map_or(0, |column| column + 1);
                self.sort = Some(next).filter(|next| *next < figures);
            }
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('+' | '=') => {
                let longer = STEPS.iter().find(|step| **step > self.every);
                self.every = longer.copied().unwrap_or(self.every);
                return Act::Again;
            }
            KeyCode::Char('-') => {
                let shorter = STEPS.iter().rfind(|step| **step < self.every);
                self.every = shorter.copied().unwrap_or(self.every);
                return Act::Again;
            }
            _ => {}
        }
        Act::Draw
    }

    fn go_to(&mut self, table: usize) {
        (self.table, self.first, self.sort) = (table, 0, None);
    }
}
