//! cuFile through host memory.

use gpuio_record::facts::Fact;

use super::{Mode, shared};
use crate::check::configuration::{compat_allowed, compat_forced};
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
    let library = match &pair.machine.cufile.library {
        Fact::Known(file) => Need::yes(About::Library, format!("the library is there: {file}")),
        Fact::Unknown(why) => {
            Need::unknown(About::Library, format!("whether the library is there: {why}"))
        }
    };
    vec![gpu, gpu::driver(pair), library, allowed(pair), shared::udev(pair)]
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
