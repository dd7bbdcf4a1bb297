//! The negotiated link of a SATA or SAS disk.

use gpuio_record::facts::DriveLink;

use crate::block::BlockDir;
use crate::parse::{gigabits, keep};
use crate::{HostError, Root};

/// `None` for disks of other kinds. A disk's directory lies below that of its port: `ata4` for
/// SATA, `port-0:3` for SAS, whose phys stand in the port's directory.
pub(super) fn read(
    root: &Root,
    dir: &BlockDir,
    problems: &mut Vec<HostError>,
) -> Option<DriveLink> {
    let mut rate = |file: String| keep(root.word(file), problems).and_then(|word| gigabits(&word));
    for above in dir.dir().ancestors().skip(1) {
        let name = above.file_name()?.to_str()?;
        if let Some(port) = name.strip_prefix("ata").filter(|port| is_number(port)) {
            let link = format!("sys/class/ata_link/link{port}");
            return Some(DriveLink {
                port: name.to_owned(),
                now_megabits: rate(format!("{link}/sata_spd")),
                most_megabits: rate(format!("{link}/hw_sata_spd_limit")),
                lanes: 1,
            });
        }
        if name.starts_with("port-") {
            let names = root.list(above).unwrap_or_default();
            let phys: Vec<&String> = names.iter().filter(|name| name.starts_with("phy-")).collect();
            let phy = phys.first()?;
            return Some(DriveLink {
                port: (*phy).clone(),
                now_megabits: rate(format!("sys/class/sas_phy/{phy}/negotiated_linkrate")),
                most_megabits: rate(format!("sys/class/sas_phy/{phy}/maximum_linkrate_hw")),
                lanes: u32::try_from(phys.len()).unwrap_or(u32::MAX),
            });
        }
    }
    None
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
