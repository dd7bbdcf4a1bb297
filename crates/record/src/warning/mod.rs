//! Warnings about results.

use gpuio_base::units::float;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metric::percent;

/// A warning about one job's numbers (or about all, without a job).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The job it is about.
    pub job: Option<String>,
    /// The observation.
    #[serde(flatten)]
    pub kind: WarningKind,
    /// The warning as text: what happened, what it means, what to do.
    pub text: String,
}

/// The meaning of a warning for the figures, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// They are not the figures that were to be measured.
    Invalid,
    /// They are not the figures of the request.
    NotAsRequested,
    /// They are right, but of too little for another run to give the same.
    Imprecise,
    /// They are right, but in part of something else.
    Mixed,
    /// They are right, with an explanation.
    Explained,
    /// Nothing: a setting had no effect.
    Note,
}

impl Severity {
    /// A sentence for readers of the figures.
    pub fn meaning(self) -> &'static str {
        match self {
            Severity::Invalid => "The figures are not those that were to be measured.",
            Severity::NotAsRequested => {
                "The figures are right, but not for the load or the storage that was requested."
            }
            Severity::Imprecise => {
                "The figures are right, but of too short a time or too few I/Os to be those of \
                 another run."
            }
            Severity::Mixed => "The figures are right, and something else has a part in them.",
            Severity::Explained => "The figures are right; this explains them.",
            Severity::Note => "The figures are right; a setting had no effect.",
        }
    }
}

/// One kind of warning, for the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarningAbout {
    /// Its name in records, in the column `warnings` of CSV and in texts.
    pub id: String,
    /// The observation.
    pub meaning: String,
    /// Its meaning for the figures.
    pub severity: Severity,
    /// When it may be ignored.
    pub ignore_if: &'static str,
    /// Its fields in records, and what each means.
    pub fields: Vec<(String, String)>,
    /// Its text in a run: what happened, what it means for the result, what to do.
    pub example: String,
}

/// Makes the enum, the texts, the severities and the examples of its rows.
macro_rules! warnings {
    ($spell:ident; $($(#[$about:meta])* $name:ident: $severity:ident, ignore: $ignore:literal $({
        $($(#[$meaning:meta])* $field:ident: $type:ty = $example:expr,)*
    })? => $text:expr,)*) => {
        /// Kinds of warning, with the figures behind them.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case", tag = "warning")]
        pub enum WarningKind {
            $($(#[$about])* $name $({ $($(#[$meaning])* $field: $type,)* })?,)*
        }

        impl WarningKind {
            /// The meaning of the warning for the figures.
            pub fn severity(&self) -> Severity {
                match self {
                    $(WarningKind::$name { .. } => Severity::$severity,)*
                }
            }

            /// When it may be ignored.
            pub fn ignore_if(&self) -> &'static str {
                match self {
                    $(WarningKind::$name { .. } => $ignore,)*
                }
            }

            /// One of each kind, with figures that could be a run's.
            pub fn examples() -> Vec<WarningKind> {
                vec![$(WarningKind::$name $({ $($field: $example,)* })?,)*]
            }
        }

        impl WarningKind {
            /// The text for readers of a command that spells keys so: advice that names one which
            /// the command refuses is left out.
            pub fn text(&self, $spell: Spell<'_>) -> String {
                match self {
                    $(WarningKind::$name $({ $($field,)* })? => String::from($text),)*
                }
            }
        }

        /// As for `gpuio bench`, which takes every key.
        impl Display for WarningKind {
            fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.text(&super::advice::of_bench))
            }
        }
    };
}

mod advice;
mod due;
mod rows;

pub use advice::Spell;
pub use rows::{OTHER_CPU_SHARE, SHORT_NS, ThreadsOf, WarningKind};

/// Who took the processors' time, and the share of each in per cent, as [`percent`] prints it:
/// other programs, the kernel, other virtual machines; without those of less than one per cent.
pub fn cpu_takers(all_ns: u64, parts: [u64; 3]) -> impl Iterator<Item = (&'static str, String)> {
    let names = ["other programs", "the kernel for them or for storage", "other virtual machines"];
    let share = move |ns: u64| float(ns) * 100.0 / float(all_ns).max(1.0);
    let parts = names.into_iter().zip(parts.map(share)).filter(|(_, share)| *share >= 1.0);
    parts.map(|(who, share)| (who, percent(share)))
}

impl WarningKind {
    /// Whether others had a part in what the storage or the processors did.
    pub fn is_of_others(&self) -> bool {
        matches!(self, WarningKind::OtherTraffic { .. } | WarningKind::OtherCpuTime { .. })
    }

    /// The stable name of the kind, which records, the column `warnings` of CSV and texts have and
    /// the reference has a page for: `holes`.
    pub fn id(&self) -> String {
        let fields = serde_json::to_value(self).unwrap_or_default();
        fields["warning"].as_str().unwrap_or_default().to_owned()
    }
}

/// All kinds, in the order of [`WarningKind`].
pub fn warning_kinds() -> Vec<WarningAbout> {
    let schema = schemars::schema_for!(WarningKind).to_value();
    let words = |value: &Value| value.as_str().unwrap_or_default().replace('\n', " ");
    let kinds = schema["oneOf"].as_array().into_iter().flatten();
    let about = |(kind, example): (&Value, WarningKind)| {
        let fields = kind["properties"].as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| *name != "warning");
        WarningAbout {
            id: example.id(),
            meaning: words(&kind["description"]),
            severity: example.severity(),
            ignore_if: example.ignore_if(),
            fields: fields.map(|(name, of)| (name.clone(), words(&of["description"]))).collect(),
            example: example.to_string(),
        }
    };
    kinds.zip(WarningKind::examples()).map(about).collect()
}

#[cfg(test)]
mod tests;
