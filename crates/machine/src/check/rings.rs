//! The needs of path `initiated`: rings that a GPU can fill, and memory to lock for them.

use gpuio_base::catalog::{RING_ENTRIES, RINGS_SINCE, RingAnswer};
use gpuio_record::facts::{Fact, Machine};

use super::machine::{CAP_SYS_ADMIN, has_capability, linux};
use super::rule::memlock;
use super::verdict::{About, Need};

/// The smallest blocks of a usual load, bytes.
const BLOCK: u64 = 4096;

/// The kernel's rings, and the limit on locked memory: registered buffers count against it.
pub(crate) fn needs(machine: &Machine) -> [Need; 2] {
    let least = u64::from(RING_ENTRIES) * BLOCK;
    let lock = memlock::need(machine, least, "a ring with 64 blocks of 4 KiB takes");
    [made(machine), lock]
}

/// Whether the kernel makes such a ring: as it was tried, else by the facts that rule it out.
fn made(machine: &Machine) -> Need {
    let kernel = &machine.host.kernel;
    let refused = |answer: RingAnswer| {
        let refusal = answer.refusal(kernel.io_uring_disabled, kernel.release.as_deref());
        refusal.map(|refusal| Need::no(About::Kernel, refusal.why).fix(refusal.remedy))
    };
    let why = match &machine.settings.gpu_rings {
        Fact::Known(answer) => {
            let made = || Need::yes(About::Kernel, "io_uring makes rings that the GPU can fill");
            return refused(*answer).unwrap_or_else(made);
        }
        Fact::Unknown(why) => why,
    };
    let setting = kernel.io_uring_disabled;
    let lacks = if machine.config.options.get("CONFIG_IO_URING").is_some_and(|on| on == "n") {
        refused(RingAnswer::NoCall)
    } else if setting == Some(2) {
        refused(RingAnswer::Forbidden)
    } else if linux(machine).is_some_and(|release| release < RINGS_SINCE) && setting.is_none() {
        // A kernel with that setting has io_uring of a later release than its own.
        refused(RingAnswer::NoSuchRing)
    } else {
        None
    };
    lacks.unwrap_or_else(|| {
        let who = match setting {
            Some(1) if has_capability(machine, CAP_SYS_ADMIN) != Some(true) => {
                " (kernel.io_uring_disabled is 1)"
            }
            _ => "",
        };
        let found = format!("whether io_uring makes rings that the GPU can fill{who}: {why}");
        Need::unknown(About::Kernel, found).fix("`gpuio list` there tries it")
    })
}
