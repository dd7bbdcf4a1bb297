//! Pairs equal loads.

use crate::compare::aspect::{ASPECTS, Kind};
use crate::compare::cell::Cell;
use crate::compare::keys;
use crate::compare::run::Run;

/// Pairs the cells of the baseline with those of another side. In this order, each cell once:
///
/// 1. the same job name, direction, point of a sweep, and no difference in the load;
/// 2. no difference in the load, whatever the name, if that is unique;
/// 3. the same name, direction and point: differences in the load will be shown;
/// 4. no difference in the load but those that `may_differ`, if that is unique;
/// 5. the only ones that are left of a direction, if each side has a single one.
///
/// Within a step results of one tool come first, so that a side with results of several has each
/// beside its like. A property that a tool does not report agrees with any value. `free` are keys
/// that may differ, as they distinguish the two sides. Gives indices, in the order of the baseline.
pub(crate) fn pair(
    baseline: &[Cell<'_>],
    other: &[Cell<'_>],
    free: &[&str],
    may_differ: &[&str],
) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let steps: [(Step, &[&str]); 5] = [
        (|a, b, free| named(a, b) && placed(a, b, free) && loads_agree(a, b, free), free),
        (|a, b, free| placed(a, b, free) && loads_agree(a, b, free), free),
        (|a, b, free| named(a, b) && placed(a, b, free), free),
        (|a, b, free| placed(a, b, free) && loads_agree(a, b, free), may_differ),
        (|a, b, _| a.direction == b.direction, free),
    ];
    let like: fn(&Run, &Run) -> bool = |a, b| a.tool_word() == b.tool_word();
    for ((step, free), tools) in steps.iter().flat_map(|one| [(one, like), (one, |_, _| true)]) {
        // All matches of this step, before any is taken: a cell with two matches is not unique.
        let fits = |a: usize, b: usize| {
            let (a, b) = (baseline[a].first(), other[b].first());
            tools(a, b) && step(a, b, free)
        };
        let left = |pairs: &[(usize, usize)], a: usize, b: usize| {
            pairs.iter().all(|pair| pair.0 != a && pair.1 != b)
        };
        let found: Vec<(usize, usize)> = (0..baseline.len())
            .flat_map(|a| (0..other.len()).map(move |b| (a, b)))
            .filter(|&(a, b)| left(&pairs, a, b) && fits(a, b))
            .collect();
        let lone = |&(a, b): &(usize, usize)| {
            found.iter().filter(|pair| pair.0 == a || pair.1 == b).count() == 1
        };
        pairs.extend(found.iter().filter(|pair| lone(pair)));
    }
    pairs.sort_unstable();
    pairs
}

type Step = fn(&Run, &Run, &[&str]) -> bool;

fn named(a: &Run, b: &Run) -> bool {
    a.job.is_some() && a.job == b.job && a.direction == b.direction
}

/// Whether both have the same values on the axes that both have.
fn placed(a: &Run, b: &Run, free: &[&str]) -> bool {
    a.at.iter().filter(|(key, _)| !free.contains(&key.as_str())).all(|(key, value)| {
        b.at.iter().find(|(other, _)| other == key).is_none_or(|(_, other)| other == value)
    })
}

/// Whether no reported property of the load differs, including the path.
fn loads_agree(a: &Run, b: &Run, free: &[&str]) -> bool {
    let relevant = |key: &str| !free.contains(&key);
    let mut load = ASPECTS.iter().filter(|aspect| {
        (aspect.kind == Kind::Load || aspect.key == "path") && relevant(aspect.key)
    });
    let properties = |run: &Run, key: &str| run.properties.get(key).cloned();
    a.direction == b.direction
        && load.all(|aspect| match (properties(a, aspect.key), properties(b, aspect.key)) {
            (Some(a), Some(b)) => aspect.agree(&a, &b),
            _ => true,
        })
        && keys::differing(a, b).iter().all(|(key, _)| !relevant(key))
}
