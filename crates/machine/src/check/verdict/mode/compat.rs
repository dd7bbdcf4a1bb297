//! cuFile through host memory.

use gpuio_record::facts::{Fact, GdsCheck};

use super::{Mode, shared};
use crate::check::configuration::{compat_allowed, compat_forced};
use crate::check::gdscheck::interpret::printed;
use crate::check::verdict::{About, Gpu, Need, Pair, gpu};

pub(super) const MODE: Mode = Mode {
    name: "compat",
    is: "cuFile through host memory (compatibility mode)",
    source: "NVIDIA, cuFile API Reference Guide, cuFile Compatibility Mode",
    needs,
};

fn needs(pair: &Pair<'_>) -> Vec<Need> {
    let gpu = match pair.gpu {
        Gpu::Software => Need::no(About::Gpu, "NVIDIA's library does not know the software GPU"),
        _ => gpu::real(pair),
    };
    vec![gpu, gpu::driver(pair), library(pair), allowed(pair), shared::udev(pair)]
}

fn library(pair: &Pair<'_>) -> Need {
    let yes = |found: String| Need::yes(About::Library, found);
    match &pair.machine.cufile.library {
        Fact::Known(Some(file)) => yes(format!("the library is there: {file}")),
        Fact::Known(None) => {
            Need::no(About::Library, "the library (libcufile.so.0) was not found: `gpuio list`")
                .fix("install NVIDIA's cuFile (package libcufile of the CUDA toolkit)")
        }
        Fact::Unknown(why) => match printed(pair.machine) {
            Some((GdsCheck { libcufile: Fact::Known(version), .. }, printed)) => {
                yes(format!("{printed} `libcufile version: {version}`"))
            }
            _ => Need::unknown(About::Library, format!("whether the library is there: {why}")),
        },
    }
}

fn allowed(pair: &Pair<'_>) -> Need {
    let (forced, allowed) = (compat_forced(pair.machine), compat_allowed(pair.machine));
    if forced.value == Fact::Known(true) {
        return Need::yes(
            About::Configuration,
            format!("compatibility mode is forced ({})", forced.from),
        );
    }
    match allowed.value {
        Fact::Known(true) => Need::yes(
            About::Configuration,
            format!("compatibility mode is allowed ({})", allowed.from),
        ),
        Fact::Known(false) => Need::no(
            About::Configuration,
            format!("compatibility mode is forbidden ({})", allowed.from),
        )
        .fix("set properties.allow_compat_mode to true"),
        Fact::Unknown(why) => Need::unknown(About::Configuration, why),
    }
}
