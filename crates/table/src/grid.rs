//! A table with headings, within a width.

use std::borrow::Cow;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// A job's name may be split into lines of this many characters.
const NARROWEST_FIRST: usize = 10;

/// A column of a [`Grid`].
#[derive(Debug, Clone)]
pub struct Column {
    pub name: Cow<'static, str>,
    /// Whether its cells are text, aligned to the left; figures are aligned to the right.
    pub left: bool,
}

/// A column of text, left-aligned.
#[must_use]
pub const fn words(name: &'static str) -> Column {
    let name = Cow::Borrowed(name);
    Column { name, left: true }
}

/// A column of figures, right-aligned.
#[must_use]
pub const fn figures(name: &'static str) -> Column {
    let name = Cow::Borrowed(name);
    Column { name, left: false }
}

/// A table before layout. Rows have a cell for each column; the first column is the job.
#[derive(Debug, Default)]
pub struct Grid {
    /// The columns, at least one.
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// The table within `width` characters, with wide gaps if possible, else narrow ones; `None`
    /// where neither fits.
    #[must_use]
    pub fn whole(&self, width: u16) -> Option<String> {
        let widest = usize::from(width);
        [2_u16, 1]
            .into_iter()
            .find(|gap| self.natural(usize::from(*gap)) <= widest)
            .map(|gap| draw(&self.columns, &self.rows, gap))
    }

    /// The table within `width` characters, the names of the first column split into lines; `None`
    /// where that leaves fewer than 10 characters for them.
    #[must_use]
    pub fn cut(&self, width: u16) -> Option<String> {
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
    #[must_use]
    pub fn at_any_width(&self, width: u16) -> String {
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
        .set_header(columns.iter().map(|column| column.name.as_ref()));
    for row in rows {
        table.add_row(row);
    }
    aligned(table, gap, |at| columns.get(at).is_none_or(|column| column.left))
}

/// Draws the table with `gap` blanks between columns and no blank at the end of a line. `left` of a
/// column's index is whether its cells are aligned to the left.
pub(crate) fn aligned(mut table: Table, gap: u16, left: impl Fn(usize) -> bool) -> String {
    table.set_content_arrangement(ContentArrangement::Disabled);
    let last = table.column_count().saturating_sub(1);
    for at in 0..=last {
        if let Some(column) = table.column_mut(at) {
            column.set_padding((0, if at == last { 0 } else { gap }));
            if !left(at) {
                column.set_cell_alignment(CellAlignment::Right);
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
mod tests {
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
