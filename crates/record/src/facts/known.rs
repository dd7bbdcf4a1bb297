//! A value, or the reason why there is none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value, or the reason why it could not be read: `{"known": 256}` or
/// `{"unknown": "needs root"}`. Where the kernel's silence needs no words, an `Option` stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// The value.
    Known(T),
    /// Why it is not known, as a clause that can stand after "unknown: ".
    Unknown(String),
}

impl<T> Fact<T> {
    /// Not known, and why.
    pub fn unknown(why: impl Into<String>) -> Self {
        Fact::Unknown(why.into())
    }

    /// The value, where it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Unknown(_) => None,
        }
    }

    /// The reason, where it is not known.
    pub fn why(&self) -> Option<&str> {
        match self {
            Fact::Known(_) => None,
            Fact::Unknown(why) => Some(why),
        }
    }

    /// The value, or `why` there is none.
    pub fn or_unknown(value: Option<T>, why: &str) -> Self {
        value.map_or_else(|| Fact::unknown(why), Fact::Known)
    }
}

/// Not examined.
impl<T> Default for Fact<T> {
    fn default() -> Self {
        Fact::unknown("not read")
    }
}
