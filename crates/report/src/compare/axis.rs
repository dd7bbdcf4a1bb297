//! Splits one set of runs into sides by a key that was varied.

use gpuio_base::units::parse_bytes;

use crate::compare::ASPECTS;
use crate::compare::aspect::CUFILE_SETTINGS;
use crate::compare::run::{Run, Side};

/// The property that tells the sides apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// An axis of a sweep, or the key of an aspect.
    pub key: String,
    /// The values to compare, the baseline's first; empty for all values, in the order in which
    /// they come.
    pub values: Vec<String>,
}

impl Axis {
    /// Reads `KEY` or `KEY=VALUE,VALUE,…`.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Axis, String> {
        let (key, values) = text.split_once('=').unwrap_or((text, ""));
        let values: Vec<String> =
            values.split(',').map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned).collect();
        if key.trim().is_empty() {
            return Err("an axis is KEY or KEY=VALUE,VALUE, such as path=gds,gather".to_owned());
        }
        if values.len() == 1 {
            return Err(format!("one value of {key} is not enough for a comparison; name two"));
        }
        Ok(Axis { key: key.trim().to_owned(), values })
    }

    /// Keys of aspects that may differ between the sides. A path has its own engine, and its own
    /// actual path.
    pub(crate) fn frees(&self) -> Vec<&str> {
        let mut free = vec![self.key.as_str()];
        match self.key.as_str() {
            "path" => free.extend(["taken", "engine", "memory", "tuning"]),
            // They are spread over the hosts.
            "ranks" => free.push("hosts"),
            "target" => free.extend(["filesystem", "device", "disk"]),
            key if key.starts_with("cufile.") => free.push(CUFILE_SETTINGS),
            _ => {}
        }
        free
    }

    /// The value that a run has on it.
    fn value<'r>(&self, run: &'r Run) -> Option<&'r str> {
        let at = run.at.iter().find(|(key, _)| *key == self.key).map(|(_, value)| value);
        at.or_else(|| run.properties.get(self.key.as_str())).map(String::as_str)
    }
}

/// The runs as sides, one for each value of the axis.
///
/// # Errors Why there are not two sides: no run has the axis, or a named value is missing. Lists
/// the known ones.
pub fn split(runs: &[Run], axis: &Axis) -> Result<Vec<Side>, String> {
    let mut there: Vec<&str> = Vec::new();
    for value in runs.iter().filter_map(|run| axis.value(run)) {
        if !there.iter().any(|other| same(other, value)) {
            there.push(value);
        }
    }
    if there.is_empty() {
        return Err(format!("no run has an axis '{}'; available: {}", axis.key, keys(runs)));
    }
    let wanted: Vec<&str> = match axis.values.as_slice() {
        [] => there.clone(),
        values => values.iter().map(String::as_str).collect(),
    };
    if let Some(missing) = wanted.iter().find(|value| !there.iter().any(|own| same(own, value))) {
        let there = there.join(", ");
        return Err(format!("no run has {}={missing}; available: {there}", axis.key));
    }
    if wanted.len() < 2 {
        let only = wanted.join("");
        return Err(format!("all runs have {}={only}, so there is nothing to compare", axis.key));
    }
    let side = |value: &str| {
        let own = runs.iter().filter(|run| axis.value(run).is_some_and(|own| same(own, value)));
        Side {
            name: format!("{}={value}", axis.key),
            runs: own.cloned().collect(),
            ..Side::default()
        }
    };
    Ok(wanted.into_iter().map(side).collect())
}

/// Whether two spellings are the same value: `1m`, `1M` and `1024k` are.
fn same(a: &str, b: &str) -> bool {
    let bytes = |text: &str| parse_bytes(text).ok();
    a.eq_ignore_ascii_case(b) || bytes(a).is_some() && bytes(a) == bytes(b)
}

/// The axes that runs can be split by: those of their sweep, and aspects with more than one value.
fn keys(runs: &[Run]) -> String {
    let keys = runs.iter().flat_map(|run| &run.at).map(|(key, _)| key.as_str());
    let mut keys = gpuio_base::document::unique(keys);
    for aspect in ASPECTS {
        let mut values: Vec<&String> =
            runs.iter().filter_map(|run| run.properties.get(aspect.key)).collect();
        values.sort_unstable();
        values.dedup();
        if values.len() > 1 && !keys.contains(&aspect.key) {
            keys.push(aspect.key);
        }
    }
    if keys.is_empty() { "none: all runs are alike".to_owned() } else { keys.join(", ") }
}
