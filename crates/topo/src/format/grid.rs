//! Columns of text.

use gpuio_units::in_columns;

/// Rows of cells, each column as wide as its widest cell, two blanks between, two before. A
/// character of each cell takes one column.
#[must_use]
pub fn grid(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for line in in_columns(rows, usize::MAX).lines() {
        let before = if line.is_empty() { "" } else { "  " };
        out.push_str(before);
        out.push_str(line);
        out.push('\n');
    }
    out
}
