//! Selects the rows of one figure.
//!
//! A figure compares what was measured under one load: one path, one block size, one depth. Each
//! axis on which rows differ is either shown by the figure (across, down, or as separate lines and
//! bars) or fixed: one value of it is chosen, and rows with other values are not drawn. So no mark
//! combines two loads. The page's script does the same steps on the same columns
//! (`assets/hold.js`), and a test compares them.

use super::axes::{Column, Role};

/// An axis that is fixed at one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FixedAxis {
    pub(super) column: usize,
    /// Values that could be chosen, ascending.
    pub(super) offered: Vec<usize>,
    /// The chosen value.
    pub(super) place: usize,
}

/// The rows that a figure draws.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Choice {
    /// Rows, ascending.
    pub(super) rows: Vec<usize>,
    /// The fixed axes, in the order of the columns.
    pub(super) fixed: Vec<FixedAxis>,
}

/// Fixes every axis that a figure does not show. The value is the one in `chosen` (key and text),
/// if rows have it; else the one of most rows, of several the first.
pub(super) fn fix(
    columns: &[Column],
    rows: &[usize],
    shown_by: &[&str],
    chosen: &[(&str, &str)],
) -> Choice {
    let shows = |column: &&Column| shown_by.contains(&column.key.as_str());
    let shown: Vec<&Column> = columns.iter().filter(shows).collect();
    let mut choice = Choice { rows: rows.to_vec(), fixed: Vec::new() };
    for (nth, column) in columns.iter().enumerate() {
        if shows(&column) || !differ(column, &shown, &choice.rows) {
            continue;
        }
        let offered = places(column, &choice.rows);
        let count =
            |place: usize| choice.rows.iter().filter(|row| column.of[**row] == place).count();
        let named = chosen.iter().find(|(key, _)| *key == column.key);
        let named = named.and_then(|(_, word)| column.words.iter().position(|one| one == word));
        let most = || offered.iter().copied().max_by_key(|at| (count(*at), std::cmp::Reverse(*at)));
        let Some(place) = named.filter(|at| offered.contains(at)).or_else(most) else { continue };
        choice.rows.retain(|row| column.of[*row] == place);
        choice.fixed.push(FixedAxis { column: nth, offered, place });
    }
    choice
}

/// Whether rows differ on an axis in a way that a figure must show or fix. For the load, any
/// difference counts. Consequences of the load (an engine, a drive) and jobs may differ between
/// marks, but not within one.
fn differ(column: &Column, shown: &[&Column], rows: &[usize]) -> bool {
    match column.role {
        Role::Load => places(column, rows).len() > 1,
        Role::CameAlong => split(column, shown, rows),
        Role::Name => false,
    }
}

/// Whether a mark has rows with several values of a column.
fn split(column: &Column, shown: &[&Column], rows: &[usize]) -> bool {
    let mut marks = std::collections::BTreeMap::new();
    rows.iter().any(|row| {
        let mark: Vec<usize> = shown.iter().map(|one| one.of[*row]).collect();
        let place = column.of[*row];
        *marks.entry(mark).or_insert(place) != place
    })
}

/// The values of a column among rows, ascending.
fn places(column: &Column, rows: &[usize]) -> Vec<usize> {
    let all: std::collections::BTreeSet<usize> = rows.iter().map(|row| column.of[*row]).collect();
    all.into_iter().collect()
}

/// The rows of each point, in the order of its first row: those of one job and load on one machine,
/// each of a different run. If a record has a load twice, both ran at the same time and are two
/// points.
pub(super) fn points(columns: &[Column], records: &[usize]) -> Vec<Vec<usize>> {
    let mut times = std::collections::BTreeMap::new();
    let telling = |one: &&Column| matches!(one.role, Role::Load | Role::CameAlong);
    let key = |(row, record): (usize, &usize)| {
        let mut key: Vec<usize> = columns.iter().filter(telling).map(|one| one.of[row]).collect();
        let nth = times.entry((key.clone(), *record)).or_insert(0_usize);
        key.push(*nth);
        *nth += 1;
        (key, row)
    };
    let points = gpuio_base::document::grouped(records.iter().enumerate().map(key));
    points.into_iter().map(|(_, rows)| rows).collect()
}
