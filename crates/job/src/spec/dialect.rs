//! The tools whose keys are understood.

/// The tool that a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// gpuio's own.
    Native,
    /// gdsio's flags and configuration files.
    Gdsio,
    /// fio's job files.
    Fio,
    /// Same spelling and meaning in several.
    All,
}

impl Dialect {
    /// The name as printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "gpuio",
            Self::Gdsio => "gdsio",
            Self::Fio => "fio",
            Self::All => "all",
        }
    }
}
