//! Columns of text.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::printable_short;

/// Rows as lines: each column as wide as its widest cell, two blanks between, the first `left`
/// columns set left and the others right, no blank at the end of a line. A character of each cell
/// takes one column. Cells hold text from outside: each is shown as [`printable_short`] shows it.
///
/// ```
/// let rows = [["bs", "IOPS"], ["4K", "812"]].map(|row| row.map(str::to_owned).to_vec());
/// assert_eq!(gpuio_units::in_columns(&rows, 1), "bs  IOPS\n4K   812\n");
/// ```
#[must_use]
pub fn in_columns(rows: &[Vec<String>], left: usize) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| printable_short(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if at == 0 { "" } else { "  " };
            // Writing to a String cannot fail.
            let _ = match at < left {
                true => write!(line, "{gap}{cell:<width$}"),
                false => write!(line, "{gap}{cell:>width$}"),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
