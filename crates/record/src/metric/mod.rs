//! The metrics. Each metric is declared once, in [`ROWS`]: its names, its unit, how it is read from
//! a result, and where it is shown. Formats, comparisons and searches walk this table.
//!
//! A percentile has no row: its names follow from its number ([`Percentile`]) and the leg
//! ([`LEGS`]), and any may be asked for.

mod rows;
mod side;
mod unit;

use gpuio_base::stat::Percentile;
use gpuio_base::units::float;
use serde::{Serialize, Serializer};

use crate::{Point, RankJob, Record, Towards};

pub use rows::{LEGS, Leg, ROWS, Row};
pub use side::Side;
pub use unit::{Unit, percent};

/// A metric: a row of the table, or a percentile of a leg.
#[derive(Debug, Clone, Copy)]
pub enum Metric {
    /// A row of [`ROWS`].
    Row(&'static Row),
    /// A percentile of the latencies of a leg.
    Percentile(&'static Leg, Percentile),
}

impl PartialEq for Metric {
    fn eq(&self, other: &Metric) -> bool {
        self.key() == other.key()
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.word())
    }
}

/// A list of metrics, for people or programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// The figures of the report's page.
    Page,
    /// Columns of a table with a line per result.
    Table,
    /// Columns of a table with a line per load.
    Summary,
    /// Lines of a comparison.
    Compared,
    /// Families of OpenMetrics, one sample per result.
    Families,
    /// The same, one sample per rank.
    RankFamilies,
}

impl List {
    /// Its metrics in order, where these percentiles were asked for.
    pub fn metrics(self, asked: &[Percentile]) -> Vec<Metric> {
        let mut all: Vec<(u8, Metric)> = all(asked)
            .into_iter()
            .filter_map(|metric| Some((metric.place(self, asked)?, metric)))
            .collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, metric)| metric).collect()
    }
}

/// Every metric, where these percentiles were asked for besides those of all lists.
pub fn all(asked: &[Percentile]) -> Vec<Metric> {
    let mut all: Vec<Metric> = ROWS.iter().map(Metric::Row).collect();
    for leg in LEGS {
        let of_leg = Percentile::joined(leg.percentiles.iter().chain(asked));
        all.extend(of_leg.into_iter().map(|at| Metric::Percentile(leg, at)));
    }
    all
}

/// The metric of this key or label, a percentile of whole latencies included.
pub fn find(name: &str) -> Option<Metric> {
    let row = ROWS.iter().find(|row| row.key == name || row.label == name).map(Metric::Row);
    row.or_else(|| Percentile::named(name).map(Metric::percentile))
}

/// The names of the metrics that comparisons use.
pub fn words() -> Vec<String> {
    List::Compared.metrics(&[]).iter().map(Metric::word).collect()
}

impl Metric {
    /// A percentile of whole latencies.
    pub fn percentile(at: Percentile) -> Metric {
        Metric::Percentile(&LEGS[0], at)
    }

    /// Its name, in which no point occurs ([`Percentile::key`]).
    pub fn key(&self) -> String {
        match self {
            Metric::Row(row) => row.key.to_owned(),
            Metric::Percentile(leg, at) => format!("{}{}", leg.prefix, at.key()),
        }
    }

    /// Its name on command lines and in what `compare` writes: of a percentile the label.
    pub fn word(&self) -> String {
        match self {
            Metric::Row(row) => row.key.to_owned(),
            Metric::Percentile(..) => self.label(),
        }
    }

    /// The head of its column.
    pub fn label(&self) -> String {
        match self {
            Metric::Row(row) => row.label.to_owned(),
            Metric::Percentile(leg, at) => format!("{}{}", leg.prefix, at.label()),
        }
    }

    /// Its name among unlike metrics.
    pub fn name(&self) -> String {
        match self {
            Metric::Row(row) => row.name.unwrap_or(row.label).to_owned(),
            Metric::Percentile(..) => self.label(),
        }
    }

    /// Its name, in words.
    pub fn title(&self) -> String {
        match self {
            Metric::Row(row) => row.title.to_owned(),
            Metric::Percentile(leg, at) => format!("{}, {}", leg.title, at.title()),
        }
    }

    /// Its unit.
    pub fn unit(&self) -> Unit {
        match self {
            Metric::Row(row) => row.unit,
            Metric::Percentile(..) => Unit::Nanoseconds,
        }
    }

    /// Whether more of it is better; `None` if neither is.
    pub fn more_is_better(&self) -> Option<bool> {
        match self {
            Metric::Row(row) => row.more_is_better,
            Metric::Percentile(..) => Some(false),
        }
    }

    /// Its value as tables show it.
    pub fn print(&self, value: f64) -> String {
        self.unit().print(value)
    }

    /// Its value; `None` if there is none. A lower bound is none: it would be shown as exact.
    pub fn of(&self, side: &Side<'_>) -> Option<f64> {
        match self {
            Metric::Row(row) => (row.of)(side),
            Metric::Percentile(leg, at) => (leg.of)(side)?.percentile(*at).map(float),
        }
    }

    /// Its value in one interval of a job; `None` where a series does not have it. Latencies are of
    /// both directions together.
    pub fn of_point(&self, point: &Point, direction: Towards) -> Option<f64> {
        match self {
            Metric::Row(row) => (row.point?)(point, direction),
            Metric::Percentile(..) if !self.is_whole() => None,
            Metric::Percentile(_, at) => point.percentile(*at).map(float),
        }
    }

    /// Its value of a job on one rank, both directions; `None` where that is not recorded.
    pub fn of_rank(&self, job: &RankJob) -> Option<f64> {
        match self {
            Metric::Row(row) => (row.rank?)(job),
            Metric::Percentile(..) if !self.is_whole() => None,
            Metric::Percentile(_, at) => job.percentile(*at).map(float),
        }
    }

    /// Whether it is a percentile of whole latencies.
    pub fn is_whole(&self) -> bool {
        matches!(self, Metric::Percentile(leg, _) if leg.prefix.is_empty())
    }

    /// Its column of CSV; `None` if it has none.
    pub fn csv(&self) -> Option<CsvColumn> {
        let (leg, at) = match self {
            Metric::Row(row) => {
                let (place, name, meaning) = row.csv?;
                let (name, meaning) = (name.to_owned(), meaning.to_owned());
                return Some(CsvColumn { place: Some(place), name, meaning });
            }
            Metric::Percentile(leg, at) => (leg, *at),
        };
        let (first, name, meaning) = leg.csv;
        let nth = leg.percentiles.iter().position(|one| *one == at);
        Some(CsvColumn {
            place: nth.and_then(|nth| Some(first + u8::try_from(nth).ok()?)),
            name: format!("{name}_{}_ns", at.key()),
            meaning: match nth {
                Some(0) => meaning.replace("{}", &at.title()),
                _ if self.is_whole() => {
                    format!("{}; empty with fewer than {} I/Os", at.title(), at.least_values())
                }
                _ => format!("the same, {}", at.title()),
            },
        })
    }

    /// Its family of OpenMetrics in one of the two lists of families.
    pub fn family(&self, list: List) -> Option<Family> {
        let of_ranks = list == List::RankFamilies;
        match self {
            Metric::Row(row) => {
                let family = if of_ranks { row.rank_family } else { row.family };
                let (_, name, unit, help) = family?;
                let prefix = if of_ranks { "gpuio_rank_" } else { "gpuio_" };
                Some(Family { name: format!("{prefix}{name}"), unit, help: help.to_owned() })
            }
            Metric::Percentile(_, at) => Some(Family {
                name: format!("gpuio_rank_latency_{}_seconds", at.key()),
                unit: "seconds",
                help: format!("{} of the latencies of one rank.", at.title()),
            }),
        }
    }

    /// Its place in a list; `None` if it is not in it.
    fn place(&self, list: List, asked: &[Percentile]) -> Option<u8> {
        let (leg, at) = match self {
            Metric::Row(row) => return row.place(list),
            Metric::Percentile(leg, at) => (leg, at),
        };
        let shown = |usual: &[Percentile]| Percentile::shown(asked, usual).contains(at);
        let (place, is_in) = match list {
            List::Page => (
                leg.page,
                leg.on_page.contains(at) || !leg.on_page.is_empty() && asked.contains(at),
            ),
            List::Table | List::Summary => (leg.page, self.is_whole() && shown(&Percentile::TABLE)),
            List::Compared => {
                (rows::COMPARED_PERCENTILES, self.is_whole() && shown(&Percentile::TABLE))
            }
            List::RankFamilies => {
                (rows::RANK_PERCENTILE, self.is_whole() && *at == Percentile::TAIL)
            }
            List::Families => return None,
        };
        Some(place).filter(|_| is_in)
    }
}

/// A column of CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvColumn {
    /// Its number in the file, from 1; `None` at the end.
    pub place: Option<u8>,
    /// Its published name.
    pub name: String,
    /// The meaning of its entries.
    pub meaning: String,
}

/// A family of OpenMetrics. Its samples are in base units ([`Unit::per_base`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// Its unit; empty for none.
    pub unit: &'static str,
    /// Its description.
    pub help: String,
}

impl Record {
    /// The percentiles that jobs asked for, ascending, with the usual ones where some job asked for
    /// none; empty where none did.
    pub fn percentiles(&self) -> Vec<Percentile> {
        Percentile::asked_by(self.plan.jobs.iter().map(|job| job.percentiles.as_slice()))
    }
}
