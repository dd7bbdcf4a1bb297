//! The abilities that cuFile reports: whether it has any path that bypasses host memory.

use gpuio_drivers::cufile::Abilities;

use super::{JobFlow, Observation, Source};
use crate::evidence::group::{APART, NOT_APART, by_foreign_library, on_gpu};
use crate::evidence::verdict::{LibraryRoute, Observed};

pub(super) const SOURCE: Source = Source {
    name: "cufile_properties",
    source: "cuFileDriverGetProperties and /proc/modules",
    observe,
};

fn observe(one: &JobFlow<'_>) -> Observation {
    if !by_foreign_library(one.job()) {
        return Observation::none("this path does not use cuFile");
    }
    let layout = &one.readings.layout;
    let Some(can) = &layout.cufile else {
        return Observation::none("cuFile does not report what it can do");
    };
    let text = reading(can);
    let (observed, why) = match (on_gpu(one.job()), APART) {
        (true, true) => interpret(can, layout.nvidia_fs),
        (true, false) => (Observed::Nothing, NOT_APART.to_owned()),
        (false, _) => (Observed::Nothing, "the bytes were requested in host memory".to_owned()),
    };
    Observation {
        before: Some(text.clone()),
        after: Some(text),
        observed,
        ..Observation::none(why)
    }
}

fn reading(can: &Abilities) -> String {
    let Abilities { nvidia_fs, storage, control, features, .. } = can;
    let nvidia_fs =
        nvidia_fs.map_or_else(|| "none".to_owned(), |(major, minor)| format!("{major}.{minor}"));
    format!(
        "nvidia-fs {nvidia_fs}, status {storage:#x}, control {control:#x}, features {features:#x}"
    )
}

fn interpret(can: &Abilities, module: Option<bool>) -> (Observed, String) {
    if can.knows_a_direct_way() {
        let ways = can.storage_names();
        let mut text = "it knows ways past host memory".to_owned();
        if !ways.is_empty() {
            text.push_str(&format!(" ({})", ways.join(", ")));
        }
        text.push_str(", and does not report which it took");
        return (Observed::Nothing, text);
    }
    if module == Some(true) {
        let text = "it reports no path that avoids host memory, although nvidia-fs is loaded";
        return (Observed::Nothing, text.to_owned());
    }
    let compat = if can.compat_allowed() { "allowed" } else { "not allowed" };
    let text = format!(
        "it knows no way but host memory: no nvidia-fs, no peer-to-peer DMA, no kind of storage \
         with a way of its own; compatibility mode is {compat}"
    );
    (Observed::Library(LibraryRoute::Host), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPAT: Abilities = Abilities { nvidia_fs: None, storage: 0, control: 2, features: 0xf };
    const HOST: Observed = Observed::Library(LibraryRoute::Host);

    #[test]
    fn only_a_library_without_any_other_path_went_through_host_memory() {
        assert_eq!(interpret(&COMPAT, Some(false)).0, HOST);
        assert_eq!(interpret(&COMPAT, None).0, HOST);
        assert_eq!(interpret(&COMPAT, Some(true)).0, Observed::Nothing, "the module is there");
        let module = Abilities { nvidia_fs: Some((2, 22)), ..COMPAT };
        assert_eq!(interpret(&module, Some(true)).0, Observed::Nothing);
        let p2p = Abilities { storage: 1 << 11, ..COMPAT };
        let (observed, why) = interpret(&p2p, Some(false));
        assert_eq!(observed, Observed::Nothing);
        assert!(why.contains("peer-to-peer"), "{why}");
    }

    #[test]
    fn the_reading_has_every_flag() {
        let text = reading(&COMPAT);
        assert_eq!(text, "nvidia-fs none, status 0x0, control 0x2, features 0xf");
    }
}
