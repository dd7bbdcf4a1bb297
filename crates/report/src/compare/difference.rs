//! Differences between two cells.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use crate::compare::aspect::{ASPECTS, Aspect, CUFILE_SETTINGS, Kind, ORDER, SOFTWARE_GPU};
use crate::compare::cell::Cell;
use crate::compare::job::SETTINGS_BREAK;
use crate::compare::keys;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Key of the aspect; of another fact its place in the record.
    pub aspect: Cow<'static, str>,
    pub what: Cow<'static, str>,
    /// The baseline's value; several if its runs differ.
    pub baseline: String,
    /// The other side's.
    pub other: String,
    /// The narrowest value of `--despite` that permits it; `None` if it is only worth knowing.
    pub despite: Option<&'static str>,
    /// Whether the pair is refused for it.
    pub refused: bool,
}

/// All differences, in the order of [`ASPECTS`]. `despite` are the given values, `free` the keys
/// that distinguish the sides.
pub(crate) fn differences(
    baseline: &Cell<'_>,
    other: &Cell<'_>,
    despite: &[String],
    free: &[&str],
) -> Vec<Difference> {
    let let_be = |key: &str, flag: &str| {
        free.contains(&key) || despite.iter().any(|word| [key, flag, "all"].contains(&&**word))
    };
    let one = |aspect: &Aspect| {
        let (a, b) = (baseline.properties(aspect.key), other.properties(aspect.key));
        if !differs(aspect, &a, &b) {
            return None;
        }
        let relevant = aspect.kind != Kind::Note;
        let let_be = let_be(aspect.key, aspect.flag);
        Some(Difference {
            aspect: aspect.key.into(),
            what: aspect.what.into(),
            baseline: value(aspect, baseline, &a, &b),
            other: value(aspect, other, &b, &a),
            despite: relevant.then_some(aspect.word()),
            refused: relevant && !let_be,
        })
    };
    let mut all: Vec<Difference> = ASPECTS.iter().filter_map(one).collect();
    let keys = keys::differing(baseline.first(), other.first());
    all.extend(keys.into_iter().map(|(key, [baseline, other])| Difference {
        aspect: key.into(),
        what: keys::what(key).into(),
        baseline: baseline.to_owned(),
        other: other.to_owned(),
        despite: Some(key),
        refused: !let_be(key, "load"),
    }));
    name_machine(&mut all);
    all.extend(facts(baseline, other));
    all
}

/// Says of another boot what it is by the other differences. A restart changes none of
/// [`NOT_BY_RESTART`].
fn name_machine(all: &mut [Difference]) {
    let by = all.iter().filter(|one| NOT_BY_RESTART.contains(&&*one.aspect));
    let by: Vec<&str> = by.map(|one| &*one.what).collect();
    let kernel = all.iter().any(|one| one.aspect == "release");
    let what = match (by.as_slice(), kernel) {
        ([], false) => return,
        ([], true) => "a restart with another kernel, or another machine".to_owned(),
        (by, _) => format!("another machine: other {}", by.join(", ")),
    };
    for boot in all.iter_mut().filter(|one| one.aspect == "boot") {
        boot.what = format!("boot id ({what})").into();
    }
}

/// Keys of facts that a restart leaves as they are.
const NOT_BY_RESTART: [&str; 4] = ["device", "cpu", "machine-memory", "gpu-uuids"];

/// Characters of a fact that are shown at most.
const LONGEST: usize = 80;

/// Facts of records that differ. One that changes from run to run on both sides says nothing.
fn facts<'a>(
    baseline: &'a Cell<'a>,
    other: &'a Cell<'a>,
) -> impl Iterator<Item = Difference> + use<'a> {
    let mut places: Vec<&str> = baseline.places();
    places.extend(other.places());
    places.sort_unstable();
    places.dedup();
    places.into_iter().filter_map(move |place| {
        let known = |cell: &'a Cell<'a>| match cell.facts(place) {
            none if none.is_empty() && requested(place, cell) => BTreeSet::from(["none"]),
            known => known,
        };
        let [a, b] = [baseline, other].map(known);
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let steady = a.len() == 1 || b.len() == 1;
        (a != b && steady).then(|| Difference {
            aspect: place.to_owned().into(),
            what: place.to_owned().into(),
            baseline: cut(&words(&a)),
            other: cut(&words(&b)),
            despite: None,
            refused: false,
        })
    })
}

/// Whether a fact that a record lacks was not requested, and is not unknown.
fn requested(place: &str, cell: &Cell<'_>) -> bool {
    let of_machine = ["plan.targets.", "plan.workers."].iter().any(|at| place.starts_with(at));
    place.starts_with("plan.") && !of_machine && !cell.first().facts.is_empty()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn differs(aspect: &Aspect, a: &BTreeSet<&str>, b: &BTreeSet<&str>) -> bool {
    if let Some(good) = aspect.must_be {
        return a.iter().chain(b).any(|value| *value != good);
    }
    if a.is_empty() || b.is_empty() {
        // An unknown value is no difference, but different runs of one side are.
        return a.len() > 1 || b.len() > 1;
    }
    if aspect.open.is_some_and(|open| a.contains(open) || b.contains(open)) {
        return false;
    }
    if aspect.near > 0.0 {
        let number = |text: &&str| text.split(' ').next()?.parse::<f64>().ok();
        let all = || a.iter().chain(b).filter_map(number);
        return all().fold(0.0, f64::max) > all().fold(f64::MAX, f64::min) * (1.0 + aspect.near);
    }
    let all = || a.iter().chain(b);
    all().any(|one| all().any(|other| !aspect.agree(one, other)))
}

fn words(values: &BTreeSet<&str>) -> String {
    if values.is_empty() {
        return "unknown".to_owned();
    }
    values.iter().copied().collect::<Vec<_>>().join(" or ")
}

/// The values of one side. Without a GPU there is none of hardware or software.
fn value(aspect: &Aspect, cell: &Cell<'_>, own: &BTreeSet<&str>, other: &BTreeSet<&str>) -> String {
    let no_gpu = aspect.key == SOFTWARE_GPU && cell.properties("gpu").contains("none");
    if no_gpu { "no GPU".to_owned() } else { shown(aspect, own, other) }
}

/// The values of one side; for cuFile's settings, those that the other side does not have.
fn shown(aspect: &Aspect, own: &BTreeSet<&str>, other: &BTreeSet<&str>) -> String {
    if aspect.key != CUFILE_SETTINGS || own.len() != 1 || other.len() != 1 {
        return words(own);
    }
    let parts = |values: &BTreeSet<&str>| -> Vec<String> {
        values.iter().flat_map(|value| value.split(SETTINGS_BREAK)).map(str::to_owned).collect()
    };
    let theirs = parts(other);
    let alone: Vec<String> = parts(own).into_iter().filter(|part| !theirs.contains(part)).collect();
    if alone.is_empty() { "none of these".to_owned() } else { alone.join(SETTINGS_BREAK) }
}

/// Important properties that one side does not report: it is unknown whether they agree.
pub(crate) fn unknown_properties(baseline: &Cell<'_>, other: &Cell<'_>) -> Vec<String> {
    // Other parts of a load are always known, or in no result of another tool.
    let of_load = |aspect: &&Aspect| aspect.kind == Kind::Matters || aspect.key == ORDER;
    let relevant = ASPECTS.iter().filter(of_load);
    let one_sided = |aspect: &&Aspect| {
        let (a, b) = (baseline.properties(aspect.key), other.properties(aspect.key));
        // Values that only may be the same.
        let open = aspect.key == ORDER && a != b && !differs(aspect, &a, &b);
        aspect.must_be.is_none() && (open || a.is_empty() != b.is_empty())
    };
    let aspects = relevant.filter(one_sided).map(|aspect| aspect.what.to_owned());
    let keys = keys::one_sided(baseline.first(), other.first()).into_iter().map(keys::what);
    let unread = [baseline, other].into_iter().flat_map(|cell| cell.first().unread.clone());
    aspects.chain(keys).chain(unread).collect()
}

/// Important properties that no run of either side reports.
pub(crate) fn unknown_of_both(baseline: &Cell<'_>, other: &Cell<'_>) -> Vec<String> {
    let relevant = ASPECTS.iter().filter(|one| one.kind == Kind::Matters && one.must_be.is_none());
    let neither =
        |one: &&Aspect| [baseline, other].iter().all(|cell| cell.properties(one.key).is_empty());
    relevant.filter(neither).map(|aspect| aspect.what.to_owned()).collect()
}
