//! One thing that a mode needs, and whether it is there.

use gpuio_record::facts::Fact;
use serde::Serialize;

/// Yes, no, or not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Yes,
    No,
    /// The facts are absent.
    Unknown,
}

impl Answer {
    /// The answer for needs that must all be met: one `No` decides, then one `Unknown`.
    pub fn of_all(answers: impl Iterator<Item = Answer> + Clone) -> Answer {
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
    pub fn word(self) -> &'static str {
        match self {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unknown => "unknown",
        }
    }
}

/// The subject of a need, in the order in which evidence is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    Gpu,
    /// NVIDIA's kernel driver and its settings.
    Driver,
    /// The module nvidia-fs and the storage drivers that registered with it.
    NvidiaFs,
    /// The kernel: its release, configuration, and limits.
    Kernel,
    /// The file system and its mount options.
    FileSystem,
    /// Devices below the mount.
    Storage,
    /// How GPU and drives reach each other.
    Pcie,
    Network,
    /// NVIDIA's library.
    Library,
    /// cuFile's settings: variables and `cufile.json`.
    Configuration,
    /// udev's database.
    Udev,
}

impl About {
    pub fn word(self) -> &'static str {
        match self {
            About::Gpu => "GPU",
            About::Driver => "driver",
            About::NvidiaFs => "nvidia-fs",
            About::Kernel => "kernel",
            About::FileSystem => "file system",
            About::Storage => "storage",
            About::Pcie => "PCIe",
            About::Network => "network",
            About::Library => "libcufile",
            About::Configuration => "cufile.json",
            About::Udev => "udev",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    pub about: About,
    pub met: Answer,
    /// The finding; for an unknown, the reason.
    pub found: String,
    /// The step that meets the need, or answers it.
    pub fix: Option<String>,
}

impl Need {
    pub(crate) fn yes(about: About, found: impl Into<String>) -> Need {
        Need { about, met: Answer::Yes, found: found.into(), fix: None }
    }

    pub(crate) fn no(about: About, found: impl Into<String>) -> Need {
        Need { about, met: Answer::No, found: found.into(), fix: None }
    }

    pub(crate) fn unknown(about: About, why: impl Into<String>) -> Need {
        Need { about, met: Answer::Unknown, found: why.into(), fix: None }
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Need {
        self.fix = Some(fix.into());
        self
    }

    /// The fix of a need that is not met; met or not known, there is nothing to do.
    pub(crate) fn fix_if_unmet(self, fix: &str) -> Need {
        if self.met == Answer::No { self.fix(fix) } else { self }
    }

    pub(crate) fn of(about: About, fact: &Fact<bool>, on: &str, off: &str, unknown: &str) -> Need {
        match fact {
            Fact::Known(true) => Need::yes(about, on),
            Fact::Known(false) => Need::no(about, off),
            Fact::Unknown(why) => Need::unknown(about, format!("{unknown}: {why}")),
        }
    }
}
