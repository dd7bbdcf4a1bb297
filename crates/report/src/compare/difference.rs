//! Differences between two cells.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use crate::compare::aspect::{ASPECTS, Aspect, CUFILE_SETTINGS, Kind};
use crate::compare::cell::Cell;
use crate::compare::job::SETTINGS_BREAK;

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
    let one = |aspect: &Aspect| {
        let (a, b) = (baseline.properties(aspect.key), other.properties(aspect.key));
        if !differs(aspect, &a, &b) {
            return None;
        }
        let relevant = aspect.kind != Kind::Note;
        let let_be = free.contains(&aspect.key)
            || despite
                .iter()
                .any(|word| word == aspect.flag || word == aspect.key || word == "all");
        Some(Difference {
            aspect: aspect.key.into(),
            what: aspect.what.into(),
            baseline: shown(aspect, &a, &b),
            other: shown(aspect, &b, &a),
            despite: relevant.then_some(aspect.word()),
            refused: relevant && !let_be,
        })
    };
    ASPECTS.iter().filter_map(one).chain(facts(baseline, other)).collect()
}

/// Characters of a fact that are shown at most.
const LONGEST: usize = 80;

/// Facts of records that differ. One that changes from run to run on both sides says nothing.
fn facts<'a>(
    baseline: &'a Cell<'a>,
    other: &'a Cell<'a>,
) -> impl Iterator<Item = Difference> + use<'a> {
    let mut places: Vec<&str> = baseline.places();
    places.retain(|place| !other.facts(place).is_empty());
    places.into_iter().filter_map(|place| {
        let (a, b) = (baseline.facts(place), other.facts(place));
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
    a != b || a.len() > 1
}

fn words(values: &BTreeSet<&str>) -> String {
    if values.is_empty() {
        return "unknown".to_owned();
    }
    values.iter().copied().collect::<Vec<_>>().join(" or ")
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
pub(crate) fn unknown_properties(baseline: &Cell<'_>, other: &Cell<'_>) -> Vec<&'static str> {
    let relevant = ASPECTS.iter().filter(|aspect| aspect.kind == Kind::Matters);
    let one_sided = |aspect: &&Aspect| {
        aspect.must_be.is_none()
            && baseline.properties(aspect.key).is_empty() != other.properties(aspect.key).is_empty()
    };
    relevant.filter(one_sided).map(|aspect| aspect.what).collect()
}
