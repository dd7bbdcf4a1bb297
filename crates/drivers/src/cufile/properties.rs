//! The capabilities that the open library reports: `cuFileDriverGetProperties`.

use crate::cufile::abi::{CONTROL_ALLOW_COMPAT, Properties};
use crate::cufile::driver::Driver;
use crate::cufile::table::Library;

/// Bits of `dstatusflags` by number: kinds of storage with a direct path.
const STORAGE: &[(u32, &str)] = &[
    (0, "Lustre"),
    (1, "WekaFS"),
    (2, "NFS"),
    (3, "GPFS"),
    (4, "NVMe"),
    (5, "NVMe-oF"),
    (6, "SCSI"),
    (7, "ScaleFlux"),
    (8, "NVMesh"),
    (9, "BeeGFS"),
    (11, "NVMe by peer-to-peer DMA"),
    (12, "ScaTeFS"),
    (13, "virtiofs"),
    (14, "PanFS"),
];
/// Bit of `fflags`: peer-to-peer DMA without nvidia-fs.
const P2P: u32 = 1 << 4;

/// The reported capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// The kernel module nvidia-fs's version; absent without the module.
    pub nvidia_fs: Option<(u32, u32)>,
    /// Kinds of storage with a direct path (`dstatusflags`), a bit each.
    pub storage: u32,
    /// How it is configured (`dcontrolflags`), a bit each.
    pub control: u32,
    /// Parts of the API that work (`fflags`), a bit each.
    pub features: u32,
}

impl Abilities {
    /// Whether the library may fall back to compatibility mode.
    pub fn compat_allowed(&self) -> bool {
        self.control & CONTROL_ALLOW_COMPAT != 0
    }

    /// Whether it reports any path past host memory: by nvidia-fs, by peer-to-peer DMA, or to a
    /// kind of storage that it supports. Without any it has only compatibility mode: `pread` and
    /// `pwrite` with host memory, and a copy.
    pub fn knows_a_direct_way(&self) -> bool {
        self.nvidia_fs.is_some() || self.storage != 0 || self.features & P2P != 0
    }

    /// Names of the kinds of storage with a direct path; numbers for bits without a name.
    pub fn storage_names(&self) -> Vec<String> {
        let name = |bit: u32| {
            let known = STORAGE.iter().find(|(number, _)| *number == bit);
            known.map_or_else(|| format!("bit {bit}"), |(_, name)| (*name).to_owned())
        };
        (0..u32::BITS).filter(|bit| self.storage & (1 << bit) != 0).map(name).collect()
    }
}

impl Properties {
    /// Queries an open library; `None` if it has no such call or refuses.
    pub(crate) fn read(library: &Library) -> Option<Properties> {
        let call = library.cuFileDriverGetProperties?;
        // Three times the structure: a release that adds fields writes there, not past the end.
        let mut room = [Properties::default(); 3];
        // SAFETY: `room` is valid for the write of the structure, and longer than it.
        let answer = unsafe { call(room.as_mut_ptr()) };
        (answer.code == 0).then_some(room[0])
    }

    /// The version of the kernel module nvidia-fs; absent without the module.
    pub(crate) fn nvidia_fs(&self) -> Option<(u32, u32)> {
        let version = (self.nvidia_fs_major, self.nvidia_fs_minor);
        (version != (0, 0)).then_some(version)
    }
}

impl Driver {
    /// The capabilities, queried anew; `None` if the library does not report them.
    pub fn abilities(&self) -> Option<Abilities> {
        Properties::read(self.library()).map(|properties| Abilities {
            nvidia_fs: properties.nvidia_fs(),
            storage: properties.status_flags,
            control: properties.control_flags,
            features: properties.features,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As release 1.15 reports with an H100 and without nvidia-fs.
    const COMPAT: Abilities = Abilities { nvidia_fs: None, storage: 0, control: 2, features: 0xf };

    #[test]
    fn one_direct_way_is_enough() {
        assert!(COMPAT.compat_allowed() && !COMPAT.knows_a_direct_way());
        let with = |change: fn(&mut Abilities)| {
            let mut abilities = COMPAT;
            change(&mut abilities);
            abilities.knows_a_direct_way()
        };
        assert!(with(|abilities| abilities.nvidia_fs = Some((2, 22))));
        assert!(with(|abilities| abilities.storage = 1 << 11));
        assert!(with(|abilities| abilities.features |= P2P));
    }

    #[test]
    fn storage_has_names() {
        let some = Abilities { storage: 1 << 4 | 1 << 10, ..COMPAT };
        assert_eq!(some.storage_names(), ["NVMe", "bit 10"]);
    }
}
