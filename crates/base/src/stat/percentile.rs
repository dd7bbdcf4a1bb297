//! Percentiles: which are reported, and what they are called.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stat::histogram::least_values;

/// Per cent in millionths, so that a percentile has one spelling.
const MILLIONTHS: u32 = 1_000_000;

/// A percentile, above 0 and below 100 %.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Percentile(u32);

impl Percentile {
    pub const MEDIAN: Percentile = Percentile::hundredths(50_00);
    /// The one that stands for the slow I/Os where there is room for one.
    pub const TAIL: Percentile = Percentile::hundredths(99_00);
    /// Those that lists have, ascending.
    pub const ALL: [Percentile; 5] = [
        Percentile::MEDIAN,
        Percentile::hundredths(90_00),
        Percentile::TAIL,
        Percentile::hundredths(99_90),
        Percentile::hundredths(99_99),
    ];
    pub const TABLE: [Percentile; 3] = [Percentile::ALL[0], Percentile::ALL[2], Percentile::ALL[3]];
    /// Those of short tables.
    pub const SHORT: [Percentile; 2] = [Percentile::MEDIAN, Percentile::TAIL];

    /// So many hundredths of a per cent, above 0 and below 10,000.
    pub const fn hundredths(number: u32) -> Percentile {
        Percentile(number * (MILLIONTHS / 100))
    }

    /// The percentiles of a table: those asked for, else the usual ones.
    pub fn shown(asked: &[Percentile], usual: &[Percentile]) -> Vec<Percentile> {
        if asked.is_empty() { usual.to_vec() } else { asked.to_vec() }
    }

    /// Those that several tables of their own would have, ascending: where one asked, the usual
    /// ones of those that did not; empty where none asked.
    pub fn asked_by<'a>(all: impl IntoIterator<Item = &'a [Percentile]>) -> Vec<Percentile> {
        let all: Vec<&[Percentile]> = all.into_iter().collect();
        if all.iter().all(|asked| asked.is_empty()) {
            return Vec::new();
        }
        let each = all.into_iter().map(|asked| Self::shown(asked, &Self::TABLE));
        Self::joined(&each.flatten().collect::<Vec<_>>())
    }

    /// Each of several once, ascending.
    pub fn joined<'a>(all: impl IntoIterator<Item = &'a Percentile>) -> Vec<Percentile> {
        all.into_iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Reads `99.9`, with at most six decimals; `None` if it is no percentage between 0 and 100.
    pub fn parse(per_cent: &str) -> Option<Percentile> {
        let (whole, decimals) = per_cent.split_once('.').unwrap_or((per_cent, "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || whole.len() > 2 || decimals.len() > 6 {
            return None;
        }
        let whole: u32 = whole.parse().ok()?;
        let part: u32 = format!("{decimals:0<6}").parse().ok()?;
        Some(Percentile(whole * MILLIONTHS + part)).filter(|one| one.0 > 0 && !decimals.is_empty())
    }

    /// Reads its name: `p99.9`, or `p99_9`.
    pub fn named(name: &str) -> Option<Percentile> {
        Percentile::parse(&name.strip_prefix('p')?.replace('_', "."))
    }

    /// The share of values up to it, 0 to 1.
    pub fn quantile(self) -> f64 {
        f64::from(self.0) / f64::from(100 * MILLIONTHS)
    }

    /// How many values it needs ([`enough_for`](crate::stat::enough_for)).
    pub fn least_values(self) -> u64 {
        least_values(self.quantile())
    }

    /// Why tables have `-` for those that lack values, in a line; `None` if all have enough.
    pub fn too_few(lacking: impl Iterator<Item = Percentile>) -> Option<String> {
        let each = lacking.map(|at| format!("{} takes {}", at.label(), at.least_values()));
        let each = each.collect::<Vec<_>>().join(", ");
        (!each.is_empty()).then(|| format!("too few I/Os: {each}"))
    }

    /// Its name in a table: `p99.9`.
    pub fn label(self) -> String {
        format!("p{self}")
    }

    /// Its name where a point has another meaning: `p99_9`.
    pub fn key(self) -> String {
        self.label().replace('.', "_")
    }

    /// In words: `median`, `99.9th percentile`.
    pub fn title(self) -> String {
        if self == Percentile::MEDIAN {
            return "median".to_owned();
        }
        let text = self.to_string();
        let ending = match text.as_bytes() {
            [.., b'1', b'1' | b'2' | b'3'] => "th",
            [.., b'1'] => "st",
            [.., b'2'] => "nd",
            [.., b'3'] => "rd",
            _ => "th",
        };
        format!("{text}{ending} percentile")
    }
}

impl fmt::Display for Percentile {
    /// The percentage without zeros behind its digits: `99.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / MILLIONTHS, self.0 % MILLIONTHS);
        let text = format!("{whole}.{part:06}");
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl From<Percentile> for f64 {
    fn from(at: Percentile) -> f64 {
        f64::from(at.0) / f64::from(MILLIONTHS)
    }
}

impl TryFrom<f64> for Percentile {
    type Error = String;

    fn try_from(per_cent: f64) -> Result<Percentile, String> {
        let at = Percentile::parse(&per_cent.to_string());
        at.ok_or_else(|| format!("{per_cent} is no percentile"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_the_number() {
        let names = |text: &str| {
            let one = Percentile::parse(text).unwrap();
            assert_eq!(Percentile::named(&one.label()), Some(one));
            assert_eq!(Percentile::named(&one.key()), Some(one));
            [one.label(), one.key(), one.title(), one.least_values().to_string()]
        };
        assert_eq!(names("50.0"), ["p50", "p50", "median", "1"]);
        assert_eq!(names("99.90"), ["p99.9", "p99_9", "99.9th percentile", "10000"]);
        assert_eq!(names("0.5"), ["p0.5", "p0_5", "0.5th percentile", "1"]);
        assert_eq!(names("92")[2..], ["92nd percentile", "125"]);
        assert_eq!(names("11")[2], "11th percentile");
        assert_eq!(Percentile::parse("99.9").map(Percentile::quantile), Some(0.999));
    }

    #[test]
    fn only_percentages_between_0_and_100_are_percentiles() {
        for text in ["", "0", "100", "0.0", "-5", "+5", "1e1", "5.", ".5", "nan", "99.9999999"] {
            assert_eq!(Percentile::parse(text), None, "{text}");
        }
        assert_eq!(Percentile::named("99"), None);
    }

    #[test]
    fn the_lists_are_ascending() {
        for list in [&Percentile::ALL[..], &Percentile::TABLE, &Percentile::SHORT] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }
}
