//! Columns of text.

/// Rows of cells, each column as wide as its widest cell, two blanks between, two before. A
/// letter of each cell takes one place.
#[must_use]
pub fn grid(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("  {cell:<width$}"));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
