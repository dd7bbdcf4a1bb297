//! Draws the screen: a heading, the tables one below another, and a line of keys.
//!
//! The selected table gets the space that it needs; the others share the rest in their order.
//! Colours only mark busy devices and errors. From 100 columns on each device has its history.

mod help;

use gpuio_base::units::paragraph;
use gpuio_watch::{Figure, Form, Row, Table, print};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::history;
use super::state::State;

/// A device that is busy for more than this share of the time is near its limit if it does one
/// request at a time; drives with many queues may still have capacity.
const BUSY_PERCENT: f64 = 90.0;
const NAME: usize = 20;
/// Screens from this width on have the history, which takes so many columns: the bars, and the most
/// of them.
const HISTORY_FROM: usize = 100;
const HISTORY: usize = history::MOST + 11;

pub(super) fn screen(frame: &mut Frame<'_>, state: &State) {
    let area = frame.area();
    let width = usize::from(area.width);
    let lines = lines(state, width, usize::from(area.height));
    for (nth, line) in (0u16..area.height).zip(lines) {
        let area_of_line = Rect { x: area.x, y: area.y + nth, width: area.width, height: 1 };
        frame.render_widget(line, area_of_line);
    }
}

fn lines(state: &State, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = vec![heading(state)];
    let space = height.saturating_sub(2);
    if state.help {
        lines.extend(help::lines(state, width).into_iter().take(space + 1));
        lines.resize(space + 1, Line::default());
        let keys = "? back to the tables  tab table  q quit";
        let dim = Style::new().add_modifier(Modifier::DIM);
        lines.push(Line::styled(print::short(keys, width), dim));
        lines.truncate(height);
        return lines;
    }
    let tables = state.tables();
    let heights = share(&tables, state.table, space);
    for (nth, (table, height)) in tables.iter().zip(heights).enumerate() {
        lines.extend(one_table(state, nth, table, width, height));
    }
    lines.extend(absent(state, space + 1 - lines.len().min(space + 1), width));
    lines.resize(space + 1, Line::default());
    let keys = "q quit  ? help  tab table  ↑↓ scroll  s sort  p pause  +- interval";
    lines.push(Line::styled(print::short(keys, width), Style::new().add_modifier(Modifier::DIM)));
    lines.truncate(height);
    lines
}

fn heading(state: &State) -> Line<'static> {
    let every = state.every.as_secs_f64();
    let what = match &state.interval {
        None => "first interval …".to_owned(),
        Some(interval) => format!("{:.2} s measured", interval.seconds),
    };
    let paused = if state.paused { "  PAUSED" } else { "" };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Line::from(vec![
        Span::styled("gpuio top", bold),
        Span::raw(format!(
            "  {}  {}  every {every} s  {what}{paused}",
            print::short(&state.host, 32),
            state.clock
        )),
    ])
}

/// Lines per table: a heading, its devices, one blank line. The selected table comes first.
fn share(tables: &[&Table], chosen: usize, space: usize) -> Vec<usize> {
    let wanted: Vec<usize> = tables.iter().map(|table| table.rows.len() + 2).collect();
    let mut given = vec![0; tables.len()];
    let mut left = space;
    let order = std::iter::once(chosen).chain((0..tables.len()).filter(|nth| *nth != chosen));
    for nth in order.filter(|nth| *nth < tables.len()) {
        // Each other table keeps at least two lines, while there are enough.
        let others = tables.len().saturating_sub(1).saturating_mul(3);
        let most = if nth == chosen { left.saturating_sub(others).max(3) } else { left };
        given[nth] = wanted[nth].min(most).min(left);
        left -= given[nth];
    }
    given
}

fn one_table(
    state: &State,
    nth: usize,
    table: &Table,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    if height < 2 {
        return vec![Line::default(); height];
    }
    let trend = table.probe.trend.filter(|_| width >= HISTORY_FROM);
    let left = if trend.is_some() { width - HISTORY } else { width };
    let columns = print::columns(table, left);
    let title = print::short(table.probe.title, NAME);
    let mut head = format!("{title:<NAME$}");
    for (column, figure) in &columns {
        let mark = if nth == state.table && state.sort == Some(*column) { "▼" } else { "" };
        let heading = format!("{mark}{}", figure.title());
        head.push_str(&format!(" {heading:>0$}", wide(figure)));
    }
    if let Some(trend) = trend {
        let (head_left, bars) = (cut(&head, left), history::MOST);
        let words = format!("last {bars}, {}", trend.title());
        head = format!("{head_left:<left$} {words:>bars$} {:>9}", "most");
    }
    let mut style = Style::new().add_modifier(Modifier::BOLD);
    if nth == state.table {
        style = style.add_modifier(Modifier::REVERSED);
    }
    let mut lines = vec![Line::styled(cut(&head, width), style)];
    let rows = state.rows(nth, table);
    let shown = rows.iter().take(height - 1);
    lines.extend(shown.map(|row| one_row(state, table, row, &columns, (left, width))));
    lines.resize(height, Line::default());
    lines
}

fn one_row(
    state: &State,
    table: &Table,
    row: &Row,
    columns: &[(usize, &'static Figure)],
    (left, width): (usize, usize),
) -> Line<'static> {
    let name = print::short(&row.name, NAME);
    let mut spans = vec![Span::raw(format!("{name:<NAME$}"))];
    if let Some(why) = row.why {
        spans.push(Span::styled(format!(" {why}"), Style::new().add_modifier(Modifier::DIM)));
        return Line::from(spans);
    }
    let figures = row.figures(table.probe);
    for (nth, figure) in columns {
        let value = figures.get(*nth).copied().flatten();
        let text = format!(" {:>1$}", print::cell(figure.form, value), wide(figure));
        spans.push(Span::styled(text, style(state, figure, value)));
    }
    let used: usize = spans.iter().map(|span| span.content.chars().count()).sum();
    let space = left.saturating_sub(used + 2);
    let about = if space > 8 { print::short(&row.about, space) } else { String::new() };
    if !about.is_empty() {
        spans.push(Span::raw(format!("  {about}")));
    }
    if let Some(trend) = table.probe.trend.filter(|_| left < width) {
        let used: usize = spans.iter().map(|span| span.content.chars().count()).sum();
        let (bars, most) = state.history.bars(table.probe.name, &row.name);
        let most = print::cell(trend.form, most);
        let gap = " ".repeat(left.saturating_sub(used));
        spans.push(Span::raw(format!("{gap} {bars} {most:>9}")));
    }
    Line::from(spans)
}

fn wide(figure: &Figure) -> usize {
    figure.title().chars().count().max(8)
}

fn style(state: &State, figure: &Figure, value: Option<f64>) -> Style {
    let value = value.unwrap_or(0.0);
    let bad = matches!(
        figure.key,
        "errors" | "receive_errors" | "send_discards" | "dropped" | "repeated" | "mapping_errors"
    );
    match figure.form {
        _ if !state.color => Style::new(),
        Form::Percent if figure.key == "busy_percent" && value > BUSY_PERCENT => {
            Style::new().fg(Color::Yellow)
        }
        // Such I/O passes the processor, which costs bandwidth and may be avoided.
        Form::Percent if figure.key == "cross_root_port_percent" && value > 0.0 => {
            Style::new().fg(Color::Yellow)
        }
        _ if bad && value > 0.0 => Style::new().fg(Color::Red),
        _ => Style::new(),
    }
}

/// Kinds without devices, with the whole reason, if there are lines left.
fn absent(state: &State, space: usize, width: usize) -> Vec<Line<'static>> {
    let dim = Style::new().add_modifier(Modifier::DIM);
    let lines = absences(state, width);
    lines.into_iter().take(space).map(|words| Line::styled(words, dim)).collect()
}

/// Kinds without devices, with the reason, in as many lines as it needs.
fn absences(state: &State, width: usize) -> Vec<String> {
    let tables = state.interval.iter().flat_map(|interval| &interval.tables);
    let words = tables.filter_map(|table| {
        let why = table.absent.as_ref()?;
        Some(paragraph(&format!("{}: ", table.probe.title), 2, why, width.max(8)))
    });
    words.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<String>>()).collect()
}

/// The first characters that fit: only the last column may be cut.
fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests;
