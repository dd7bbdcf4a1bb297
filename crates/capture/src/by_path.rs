//! `ls -l /dev/disk/by-path`: links that udev names by PCI address (systemd's `path_id`). Paths of
//! drives in sysfs say the same: `ls -l /sys/block`, `ls -l /sys/class/nvme`, `readlink -f`.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::NvmeController;

use crate::prompt::command_of;
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge, nvme_json};

pub(crate) const KIND: Kind = Kind {
    command: "ls -l /dev/disk/by-path",
    gives: "drives by PCI address; which are on USB; also `ls -l /sys/block`, `/sys/class/nvme`",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().any(|line| line.contains("pci-") && line.contains(" -> ../../"))
            || text.lines().any(|line| in_sysfs(line).is_some())
            || text.lines().zip(text.lines().skip(1)).any(|pair| of_command(pair).is_some())
    },
    add,
};

/// A drive or NVMe controller, and its PCI address.
struct Placed<'t> {
    name: &'t str,
    address: String,
    on_usb: bool,
}

/// The drive of a path in sysfs: `…/devices/pci0000:80/0000:80:01.1/0000:81:00.0/nvme/nvme0` and
/// `…/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda`.
fn in_sysfs(line: &str) -> Option<Placed<'_>> {
    let (_, path) = line.trim().rsplit_once("devices/pci")?;
    let mut address = None;
    let (mut on_usb, mut is_block) = (false, false);
    for part in path.split('/') {
        // Address of an NVMe drive, or of the adapter of a disk.
        address = normalize_pci(part).or(address);
        on_usb |= part.starts_with("usb");
        is_block |= ["nvme", "block"].contains(&part);
    }
    let name = path.rsplit('/').next().filter(|name| is_block && is_drive(name))?;
    Some(Placed { name, address: address?, on_usb })
}

/// `nvme0`, `nvme0n1`, `sda`; no partition.
fn is_drive(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let nvme = name.strip_prefix("nvme").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains(['p', 'c'])
    });
    let sd = name.strip_prefix("sd");
    let sd =
        sd.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_lowercase()));
    plain && (nvme || sd)
}

/// The drive that a command names, with the address that it prints on the next line:
/// `cat /sys/class/nvme/nvme0/address`, `readlink -f /sys/block/nvme0n1/device/device`.
fn of_command<'t>((command, printed): (&'t str, &str)) -> Option<Placed<'t>> {
    let command = command_of(command)?;
    let path = command.split_whitespace().find(|word| word.starts_with("/sys/"))?;
    let end = path.rsplit('/').next()?;
    let name = path.split('/').find(|part| is_drive(part))?;
    let address = normalize_pci(printed.trim().rsplit('/').next()?)?;
    let is_address = ["address", "device"].contains(&end);
    is_address.then_some(Placed { name, address, on_usb: false })
}

/// Takes in a drive with its address.
fn put(captured: &mut Captured, Placed { name, address, on_usb }: Placed<'_>) {
    let number = name.strip_prefix("nvme").and_then(|number| number.parse().ok());
    if let Some(number) = number {
        let controller = NvmeController {
            name: name.to_owned(),
            pci: Some(address),
            transport: Some("pcie".to_owned()),
            address: None,
            state: None,
            firmware: None,
        };
        nvme_json::keep_one(captured, number, controller);
        return;
    }
    let block = merge::disk_or_partition(&mut captured.machine, name);
    if on_usb {
        block.facts.transport = Some("usb".to_owned());
    }
    if block.facts.disk.is_none() {
        block.facts.pci_address = Some(address.clone());
        block.pci = vec![address];
    }
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let all: Vec<&str> = text.lines().collect();
    for (index, line) in lines(text) {
        let above = index.checked_sub(1).map(|above| all[above]);
        let named = above.and_then(|above| of_command((above, line)));
        if let Some(placed) = in_sysfs(line).or(named) {
            if captured.machine.block.len() > MOST_DEVICES {
                return Err(CaptureError::new(index, line, 0, "fewer devices"));
            }
            put(captured, placed);
            continue;
        }
        let total = line.trim_start().strip_prefix("total ").map(str::trim);
        if total.is_some_and(|blocks| blocks.parse::<u64>().is_ok()) {
            continue;
        }
        let Some((left, target)) = line.split_once(" -> ") else {
            let wanted = "a link, like pci-… -> ../../nvme0n1";
            captured.skip(CaptureError::new(index, line, 0, wanted));
            continue;
        };
        // Arrays, partitions and cards in sysfs.
        if target.contains("devices/") {
            continue;
        }
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
        put(captured, Placed { name: device, address, on_usb });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_s_address_is_in_sysfs_too() {
        let lspci = "$ lspci -vv -s 81:00.0\n81:00.0 Non-Volatile memory controller: Samsung\n\
                     \tLnkSta:\tSpeed 8GT/s (downgraded), Width x4\n";
        let way = "devices/pci0000:80/0000:80:01.1/0000:81:00.0";
        let list = "$ lsblk\nNAME    MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\n\
                    nvme0n1 259:3 0 3.5T 0 disk /data\n";
        for relation in [
            format!(
                "$ ls -l /sys/block\ntotal 0\nlrwxrwxrwx 1 root root 0 Jan  1 00:00 md0 -> \
                 ../devices/virtual/block/md0\nlrwxrwxrwx 1 root root 0 Jan  1 00:00 nvme0n1 -> \
                 ../{way}/nvme/nvme0/nvme0n1\n"
            ),
            format!(
                "$ ls -l /sys/class/nvme\nlrwxrwxrwx 1 a 0 Jan 1 nvme0 -> ../../{way}/nvme/nvme0\n"
            ),
            format!("$ readlink -f /sys/block/nvme0n1\n/sys/{way}/nvme/nvme0/nvme0n1\n"),
            format!("$ readlink -f /sys/block/nvme0n1/device/device\n/sys/{way}\n"),
            "$ cat /sys/class/nvme/nvme0/address\n0000:81:00.0\n".to_owned(),
        ] {
            let mut captured = Captured::default();
            let text = format!("{lspci}{relation}{list}");
            crate::read("a text", &text, &mut captured).unwrap();
            captured.finish();
            let all = captured.machine.block.iter();
            let drives: Vec<_> = all.map(|one| (&one.facts.name[..], &one.pci[..])).collect();
            assert_eq!(drives, [("nvme0n1", &["0000:81:00.0".to_owned()][..])], "{relation}");
            let passed = captured.texts.iter().flat_map(|text| &text.skipped).count();
            assert_eq!(passed, 0, "{relation}");
        }
        let disk =
            "x -> ../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda";
        assert_eq!(in_sysfs(disk).map(|one| one.address).as_deref(), Some("0000:00:17.0"));
        let card = "eth0 -> ../../devices/pci0000:80/0000:80:01.1/0000:81:00.0/net/eth0";
        assert!(in_sysfs(card).is_none());
    }
}
