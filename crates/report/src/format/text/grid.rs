//! Columns within a width.

use std::borrow::Cow;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// A job's name may be split into lines of this many characters.
const NARROWEST_FIRST: usize = 10;

/// A column's heading, and whether its cells are left-aligned text.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: Cow<'static, str>,
    pub(super) left: bool,
}

/// Text, left-aligned.
pub(super) const fn words(name: &'static str) -> Column {
    let name = Cow::Borrowed(name);
    Column { name, left: true }
}

/// Figures, right-aligned.
pub(super) const fn figures(name: &'static str) -> Column {
    let name = Cow::Borrowed(name);
    Column { name, left: false }
}

/// A table before layout. Rows have a cell for each column; the first column is the job.
#[derive(Debug, Default)]
pub(super) struct Grid {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Grid {
    /// Fits the table into `width`, with wide gaps if possible, else narrow ones.
    pub(super) fn whole(&self, width: u16) -> Option<String> {
        let widest = usize::from(width);
        [2_u16, 1]
            .into_iter()
            .find(|gap| self.natural(usize::from(*gap)) <= widest)
            .map(|gap| draw(&self.columns, &self.rows, gap))
    }

    /// Fits the table into `width` by splitting the names of the first column, unless that leaves
    /// fewer than [`NARROWEST_FIRST`] characters for them.
    pub(super) fn cut(&self, width: u16) -> Option<String> {
        let first = self.widths().first().copied().unwrap_or(0);
        let others = self.natural(1) - first;
        let left = usize::from(width).checked_sub(others)?;
        if left < NARROWEST_FIRST {
            return None;
        }
        let mut rows = self.rows.clone();
        for first in rows.iter_mut().filter_map(|row| row.first_mut()) {
            *first = in_lines(first, left);
        }
        Some(draw(&self.columns, &rows, 1))
    }

    /// With whole or split names; wider than `width` if neither fits.
    pub(super) fn at_any_width(&self, width: u16) -> String {
        self.whole(width)
            .or_else(|| self.cut(width))
            .unwrap_or_else(|| draw(&self.columns, &self.rows, 1))
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |(at_column, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at_column));
            cells
                .map(|cell| cell.chars().count())
                .chain([column.name.chars().count()])
                .max()
                .unwrap_or(0)
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    fn natural(&self, gap: usize) -> usize {
        let gaps = self.columns.len().saturating_sub(1);
        self.widths().iter().sum::<usize>() + gap * gaps
    }
}

fn draw(columns: &[Column], rows: &[Vec<String>], gap: u16) -> String {
    let mut table = Table::new();
    table
        .load_style(TableStyle::new().header_separator(LineStyle::none().fill('-')))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(|column| column.name.as_ref()));
    for row in rows {
        table.add_row(row);
    }
    let last = columns.len().saturating_sub(1);
    for (at_column, column) in columns.iter().enumerate() {
        if let Some(drawn) = table.column_mut(at_column) {
            drawn.set_padding((0, if at_column == last { 0 } else { gap }));
            if !column.left {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// Splits a name into lines of at most `width` characters, at separators if that leaves lines at
/// least half full.
fn in_lines(name: &str, width: usize) -> String {
    let mut rest: Vec<char> = name.chars().collect();
    let mut lines: Vec<String> = Vec::new();
    while rest.len() > width {
        let parts = |c: &char| matches!(c, '-' | '_' | '.' | ',' | ' ' | '/');
        let after = rest[..width].iter().rposition(parts).map(|at_column| at_column + 1);
        let end = after.filter(|end| *end >= width / 2).unwrap_or(width);
        let tail = rest.split_off(end);
        lines.push(rest.into_iter().collect());
        rest = tail;
    }
    lines.push(rest.into_iter().collect());
    lines.join("\n")
}

#[cfg(test)]
mod test {
    use super::in_lines;

    #[test]
    fn names_break_after_signs_and_nothing_is_lost() {
        assert_eq!(in_lines("buffered-writes", 14), "buffered-\nwrites");
        assert_eq!(in_lines("short", 10), "short");
        assert_eq!(in_lines("a-verylongname", 10), "a-verylong\nname");
        let long = "ééééé_ééééé-a-name-that-goes-on";
        for width in 1..40 {
            let lines = in_lines(long, width);
            assert!(lines.lines().all(|line| line.chars().count() <= width));
            assert_eq!(lines.replace('\n', ""), long);
        }
    }
}
