//! Which rows may stand in one figure.
//!
//! A figure compares what was measured under one load: one path, one block size, one depth. Each
//! axis on which rows differ is either shown by the figure (across, down, or as lines and bars of
//! its own) or held: one place of it is chosen, and rows elsewhere are not drawn. So no mark is a
//! figure of two loads. The page's script does the same steps over the same columns
//! (`assets/hold.js`), and a test holds it to these.

use super::super::axes::{Column, Role};

/// An axis that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::set) struct Held {
    /// Number of its column.
    pub(in crate::set) column: usize,
    /// Places that could be chosen, ascending.
    pub(in crate::set) offered: Vec<usize>,
    /// The chosen one.
    pub(in crate::set) place: usize,
}

/// What of the rows a figure draws.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::set) struct Choice {
    /// Rows, ascending.
    pub(in crate::set) rows: Vec<usize>,
    /// What is held, in the order of the columns.
    pub(in crate::set) held: Vec<Held>,
}

/// Holds what a figure does not show. Of a held axis the place is the one in `chosen` (key and
/// words), where rows have it; else the one of most rows, of several the first.
pub(in crate::set) fn hold(
    columns: &[Column],
    records: &[usize],
    rows: &[usize],
    shown_by: &[&str],
    chosen: &[(&str, &str)],
) -> Choice {
    let shows = |column: &&Column| shown_by.contains(&column.key.as_str());
    let shown: Vec<&Column> = columns.iter().filter(shows).collect();
    let mut choice = Choice { rows: rows.to_vec(), held: Vec::new() };
    for (nth, column) in columns.iter().enumerate() {
        if shows(&column) || !differ(column, &shown, records, &choice.rows) {
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
        choice.held.push(Held { column: nth, offered, place });
    }
    choice
}

/// Whether rows differ on an axis in a way that a figure has to show or to hold. Of the load any
/// difference is one; what came along with it (an engine, a drive) may be another at another mark,
/// and must be one at each.
fn differ(column: &Column, shown: &[&Column], records: &[usize], rows: &[usize]) -> bool {
    match column.role {
        Role::Load => places(column, rows).len() > 1,
        Role::CameAlong => split(column, shown, rows, |_| 0),
        // Jobs of one record ran beside each other: they are no repeats.
        Role::Job => split(column, shown, rows, |row| records[row]),
        Role::Name => false,
    }
}

/// Whether a mark has rows at several places of a column, rows of another `apart` being another
/// mark.
fn split(
    column: &Column,
    shown: &[&Column],
    rows: &[usize],
    apart: impl Fn(usize) -> usize,
) -> bool {
    let mut marks = std::collections::BTreeMap::new();
    rows.iter().any(|row| {
        let mut mark: Vec<usize> = shown.iter().map(|one| one.of[*row]).collect();
        mark.push(apart(*row));
        let place = column.of[*row];
        *marks.entry(mark).or_insert(place) != place
    })
}

/// The places of a column that rows take, ascending.
fn places(column: &Column, rows: &[usize]) -> Vec<usize> {
    let all: std::collections::BTreeSet<usize> = rows.iter().map(|row| column.of[*row]).collect();
    all.into_iter().collect()
}

/// The rows of each point, in the order of its first row: rows of one load on one machine, each of
/// a run of its own. Loads that a record has twice ran beside each other and are points of their
/// own.
pub(in crate::set) fn points(columns: &[Column], records: &[usize]) -> Vec<Vec<usize>> {
    let mut times = std::collections::BTreeMap::new();
    let mut points: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    let telling = |one: &&Column| matches!(one.role, Role::Load | Role::CameAlong);
    for (row, record) in records.iter().enumerate() {
        let mut key: Vec<usize> = columns.iter().filter(telling).map(|one| one.of[row]).collect();
        let nth = times.entry((key.clone(), *record)).or_insert(0_usize);
        key.push(*nth);
        *nth += 1;
        match points.iter_mut().find(|(known, _)| *known == key) {
            Some((_, of)) => of.push(row),
            None => points.push((key, vec![row])),
        }
    }
    points.into_iter().map(|(_, rows)| rows).collect()
}
