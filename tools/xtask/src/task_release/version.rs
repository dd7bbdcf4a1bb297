//! Versions that a release can have.

use anyhow::{Context as _, bail};

/// MAJOR.MINOR.PATCH of semantic versioning, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(u64, u64, u64);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl std::str::FromStr for Version {
    type Err = anyhow::Error;

    /// Refuses pre-releases and builds too: semver, deb, rpm and wheels spell and order them
    /// differently, and the name of a package is made of the version as it is.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.contains(['-', '+']) {
            bail!("{text}: packages have no one form for pre-releases and builds: give 1.2.3");
        }
        let number = |part: &str| -> Option<u64> {
            let plain = part.bytes().all(|b| b.is_ascii_digit());
            let leading_zero = part.len() > 1 && part.starts_with('0');
            (plain && !leading_zero).then(|| part.parse().ok()).flatten()
        };
        let numbers: Option<Vec<u64>> = text.split('.').map(number).collect();
        let numbers = numbers.unwrap_or_default();
        let parts = <[u64; 3]>::try_from(numbers).ok();
        let [major, minor, patch] = parts.with_context(|| {
            format!("{text:?} is no semantic version: give MAJOR.MINOR.PATCH, such as 1.2.3")
        })?;
        Ok(Self(major, minor, patch))
    }
}
