//! An NVMe namespace and the controllers that lead to it.

use std::path::{Path, PathBuf};

use gpuio_record::facts::{NvmeController, NvmeFacts};

use crate::block::{BlockDir, is_nvme_controller, last_pci_address};
use crate::parse::keep;
use crate::{HostError, Root};

/// `None` for disks that are not NVMe.
pub(super) fn read(
    root: &Root,
    dir: &BlockDir,
    problems: &mut Vec<HostError>,
) -> Option<NvmeFacts> {
    let above = dir.dir().parent()?;
    let name = above.file_name()?.to_str()?;
    let multipath = name.starts_with("nvme-subsys");
    let dirs = if multipath {
        let names = keep(root.list(above).map(Some), problems).unwrap_or_default();
        let names = names.iter().filter(|name| is_nvme_controller(name));
        names.filter_map(|name| root.resolve(above.join(name))).collect()
    } else if is_nvme_controller(name) {
        vec![above.to_owned()]
    } else {
        return None;
    };
    let namespace = keep(root.number(dir.file("nsid")), problems);
    let policy = multipath.then(|| keep(root.word(above.join("iopolicy")), problems)).flatten();
    Some(NvmeFacts {
        namespace: namespace.and_then(|number| u32::try_from(number).ok()),
        multipath,
        policy,
        controllers: dirs.iter().map(|dir| controller(root, dir, problems)).collect(),
    })
}

fn controller(root: &Root, dir: &Path, problems: &mut Vec<HostError>) -> NvmeController {
    let mut word = |name: &str| keep(root.word(PathBuf::from(dir).join(name)), problems);
    NvmeController {
        name: dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        pci: last_pci_address(dir),
        transport: word("transport"),
        address: word("address"),
        state: word("state"),
        firmware: word("firmware_rev"),
    }
}
