//! The help: keys, columns of the selected table, and what is absent.

use gpuio_base::units::paragraph;
use gpuio_watch::Figure;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::absences;
use crate::ui::top::history;
use crate::ui::top::state::State;

const KEYS: [(&str, &str); 7] = [
    ("q, Esc, Ctrl-C", "quit"),
    ("tab, ← →", "select the next or the previous table"),
    ("↑ ↓", "scroll the selected table"),
    ("s", "sort it by the next column, after the last one by its own order"),
    ("p, space", "pause the tables; the history goes on"),
    ("+ -", "a longer or shorter interval"),
    ("?", "this page, and back"),
];

/// A figure in words. The unit is in its heading: that of the key is of JSON.
fn what(figure: &Figure) -> String {
    let units = ["_seconds", "_percent", "_bytes"];
    let key = units.iter().find_map(|unit| figure.key.strip_suffix(unit)).unwrap_or(figure.key);
    key.replace('_', " ")
}

pub(super) fn lines(state: &State, width: usize) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut out = vec![Line::styled("Keys", bold)];
    out.extend(KEYS.iter().map(|(keys, what)| Line::raw(format!("  {keys:<16} {what}"))));
    let tables = state.tables();
    if let Some(table) = tables.get(state.table) {
        let probe = table.probe;
        out.push(Line::default());
        out.push(Line::styled(format!("{}, from {}", probe.title, probe.source), bold));
        for figure in probe.figures {
            out.push(Line::raw(format!("  {:<16} {}", figure.title(), what(figure))));
        }
        if let Some(trend) = probe.trend {
            let words = format!(
                "{} of the last {} intervals, and the most of them; bars reach from 0 to it",
                trend.title(),
                history::MOST
            );
            out.extend(
                paragraph("  history          ", 19, &words, width.max(24))
                    .lines()
                    .map(|line| Line::raw(line.to_owned())),
            );
        }
    }
    let absent = absences(state, width);
    if !absent.is_empty() {
        out.push(Line::default());
        out.push(Line::styled("Not here", bold));
        out.extend(absent.into_iter().map(Line::raw));
    }
    out.push(Line::default());
    let more = "`-` is unknown, or makes no sense, as the mean wait of no request. Yellow: a \
        device above 90 % busy, or I/O between root ports; red: errors or dropped packets. \
        docs/top.md has the source of each figure.";
    out.extend(
        paragraph("", 0, more, width.max(24)).lines().map(|line| Line::raw(line.to_owned())),
    );
    out
}
