//! Predefined sweeps.

mod clients;
mod gdsbench;
mod guide;
mod matrix;
mod paths;
mod quick;
mod routing;

pub use routing::{is_route, routes};

/// A predefined sweep. Axes and keys on the command line replace its own.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// One line: the question that it answers.
    pub summary: &'static str,
    /// Note on its results; may be empty.
    pub note: &'static str,
    /// Paths to use instead of the one in `keys`, the first that can run here; empty if it is never
    /// replaced.
    pub fallbacks: &'static [&'static str],
    /// Keys and values of the load that all points share.
    pub keys: &'static [(&'static str, &'static str)],
    /// Axes, as `--vary` takes them, slowest first.
    pub axes: &'static [&'static str],
    /// Axes that the command line must give, each with the reason.
    pub needs: &'static [(&'static str, &'static str)],
    /// Default number of runs per point.
    pub repeats: u32,
    /// Whether its points are routes to near and far GPUs, which depend on the machine ([`routes`],
    /// [`is_route`]).
    pub routes: bool,
}

/// All presets.
pub const PRESETS: [Preset; 7] = [
    quick::PRESET,
    guide::PRESET,
    paths::PRESET,
    matrix::PRESET,
    clients::PRESET,
    gdsbench::PRESET,
    routing::PRESET,
];

/// The preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_read() {
        for preset in &PRESETS {
            assert!(preset.repeats > 0 && !preset.summary.is_empty());
            for axis in preset.axes {
                crate::sweep::Axis::parse(axis).unwrap();
            }
        }
        let guide = preset("guide").unwrap();
        let threads = crate::sweep::Axis::parse(guide.axes[1]).unwrap().values;
        assert_eq!(threads, ["4", "8", "16", "32", "64", "128"]);
        assert_eq!(guide.keys[0], ("path", "gds"));
        assert_eq!(preset("paths").unwrap().name, "paths");
        assert!(preset("path").is_none());
    }
}
