//! `ls -l /dev/disk/by-path`: links that udev names by PCI address (systemd's `path_id`).

use gpuio_host::numa::normalize_pci;

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "ls -l /dev/disk/by-path",
    gives: "drives by PCI address; which are on USB",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().any(|line| line.contains("pci-") && line.contains(" -> ../../"))
    },
    add,
};

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    for (index, line) in lines(text) {
        let total = line.trim_start().strip_prefix("total ").map(str::trim);
        if total.is_some_and(|blocks| blocks.parse::<u64>().is_ok()) {
            continue;
        }
        let Some((left, target)) = line.split_once(" -> ") else {
            let wanted = "a link, like pci-… -> ../../nvme0n1";
            captured.skip(CaptureError::new(index, line, 0, wanted));
            continue;
        };
        let device = target.trim().rsplit('/').next().unwrap_or_default();
        if captured.machine.block.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
        if device.is_empty() || device.contains(char::is_whitespace) {
            captured.skip(CaptureError::at(index, line, target, "a device, like ../../nvme0n1"));
            continue;
        }
        let name = left.rsplit(' ').next().unwrap_or_default();
        let Some((_, after)) = name.rsplit_once("pci-") else {
            // Disks of other buses have no address here.
            merge::disk_or_partition(&mut captured.machine, device);
            continue;
        };
        // `0000:2e:00.0-nvme-1`: the address ends at the dash.
        let mut parts = after.split('-');
        let address = parts.next().unwrap_or_default();
        // `usb`, and `usbv2` and `usbv3` of newer releases.
        let on_usb = parts.any(|part| part == "usb" || part.starts_with("usbv"));
        let Some(address) = normalize_pci(address) else {
            let wanted = "a PCI address, like 0000:2e:00.0";
            captured.skip(CaptureError::at(index, line, after, wanted));
            continue;
        };
        let block = merge::disk_or_partition(&mut captured.machine, device);
        if on_usb {
            block.facts.transport = Some("usb".to_owned());
        }
        if block.facts.disk.is_none() {
            block.facts.pci_address = Some(address.clone());
            block.pci = vec![address];
        }
    }
    Ok(())
}
