//! One thing that a mode needs, and whether it is there.

use gpuio_record::facts::Fact;
use serde::Serialize;

/// Yes, no, or not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is so.
    Yes,
    /// It is not.
    No,
    /// The facts are absent.
    Unknown,
}

impl Answer {
    /// Of needs that must all be met: one that is not decides, then one that is not known.
    pub(crate) fn of_all(answers: impl Iterator<Item = Answer> + Clone) -> Answer {
        let has = |wanted| answers.clone().any(|answer| answer == wanted);
        if has(Answer::No) {
            Answer::No
        } else if has(Answer::Unknown) {
            Answer::Unknown
        } else {
            Answer::Yes
        }
    }

    /// The word for it, as an answer to "does it work?".
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unknown => "unknown",
        }
    }
}

/// A need of a mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    /// Whether it is met.
    pub met: Answer,
    /// What was found; of an unknown, why it is not known.
    pub found: String,
    /// What meets it, or answers it.
    pub fix: Option<String>,
}

impl Need {
    pub(crate) fn yes(found: impl Into<String>) -> Need {
        Need { met: Answer::Yes, found: found.into(), fix: None }
    }

    pub(crate) fn no(found: impl Into<String>) -> Need {
        Need { met: Answer::No, found: found.into(), fix: None }
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Need {
        Need { met: Answer::Unknown, found: why.into(), fix: None }
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Need {
        self.fix = Some(fix.into());
        self
    }

    /// The fix of a need that is not met; met or not known, there is nothing to do.
    pub(crate) fn fix_if_unmet(self, fix: &str) -> Need {
        if self.met == Answer::No { self.fix(fix) } else { self }
    }

    /// A fact that is on or off.
    pub(crate) fn of(fact: &Fact<bool>, on: &str, off: &str, unknown: &str) -> Need {
        match fact {
            Fact::Known(true) => Need::yes(on),
            Fact::Known(false) => Need::no(off),
            Fact::Unknown(why) => Need::unknown(format!("{unknown}: {why}")),
        }
    }
}
