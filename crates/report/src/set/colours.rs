//! Colours of paths: as many different ones as paths are shown together.
//!
//! The numbers are those of the palette in `assets/page.css` (`--p0` …), whose colours differ for
//! readers who see no red or no green, too; a test measures it.

use super::rows::Row;

pub(super) const PALETTE: usize = 8;

/// Paths in the order in which they choose, with the colour that each takes if it is free.
const PREFERRED: &[(&str, usize)] = &[
    ("host", 0),
    ("staged", 1),
    ("gather", 2),
    ("gds", 3),
    ("mapped", 4),
    ("library", 5),
    ("cached", 6),
    ("resident", 7),
    ("initiated", 3),
    ("managed", 4),
    ("routed", 5),
    ("fan-out", 6),
    ("gds-batch", 7),
    ("gds-stream", 4),
    ("gds-batch-stream", 5),
    ("library-batch", 6),
    ("library-stream", 7),
];

/// The colour of each path of these rows: its own one, or the next that no other path has; from the
/// ninth path on colours repeat.
pub(super) fn of_paths(rows: &[Row<'_>]) -> Vec<(String, usize)> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        let name = row.plan.path.choice.actual.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let wish = |name: &str| PREFERRED.iter().position(|(known, _)| *known == name);
    names.sort_by_key(|name| wish(name).unwrap_or(usize::MAX));
    let mut taken: Vec<(String, usize)> = Vec::new();
    for (nth, name) in names.into_iter().enumerate() {
        let first = wish(name).map_or(nth, |at| PREFERRED[at].1);
        let order = (0..PALETTE).map(|step| (first + step) % PALETTE);
        let free = |colour: &usize| taken.iter().all(|(_, known)| known != colour);
        let colour = order.clone().find(free).unwrap_or(nth % PALETTE);
        taken.push((name.to_owned(), colour));
    }
    taken
}
