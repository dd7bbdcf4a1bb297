//! Rows without headings.

use comfy_table::{Table, TableStyle};
use gpuio_base::units::printable_short;

use crate::grid::aligned;

/// Rows as lines: each column as wide as its widest cell, two blanks between, the first `left`
/// columns aligned to the left and the others to the right, no blank at the end of a line. Cells
/// may hold text from outside: each is shown as [`printable_short`] shows it. No rows are no text.
///
/// ```
/// let rows = [["bs", "IOPS"], ["4K", "812"]].map(|row| row.map(str::to_owned).to_vec());
/// assert_eq!(gpuio_table::in_columns(&rows, 1), "bs  IOPS\n4K   812\n");
/// ```
#[must_use]
pub fn in_columns(rows: &[Vec<String>], left: usize) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    for row in rows {
        table.add_row(row.iter().map(|cell| printable_short(cell)));
    }
    aligned(table, 2, |at| at < left)
}

/// [`in_columns`] with all columns aligned to the left and two blanks before each line.
#[must_use]
pub fn indented_columns(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for line in in_columns(rows, usize::MAX).lines() {
        let before = if line.is_empty() { "" } else { "  " };
        out.push_str(before);
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{in_columns, indented_columns};

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect()).collect()
    }

    #[test]
    fn rows_may_be_short_or_empty() {
        assert_eq!(in_columns(&[], 1), "");
        assert_eq!(
            in_columns(&rows(&[&["a", "1", "x"], &["bbb"], &["c", "22"]]), 1),
            "a     1  x\nbbb\nc    22\n"
        );
        assert_eq!(indented_columns(&rows(&[&["a", "b"], &[], &["c"]])), "  a  b\n\n  c\n");
    }

    #[test]
    fn a_line_feed_in_a_cell_is_an_escape() {
        assert_eq!(in_columns(&rows(&[&["a\nb", "c"]]), 2), "a\\nb  c\n");
    }
}
