//! The alignment that direct I/O requires of sizes and offsets.

use gpuio_base::units::format_bytes;
use gpuio_record::facts::{BlockKind, Machine, MountKind};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{disks_below, none_of};

pub(super) const RULE: Rule = Rule {
    name: "dio-align",
    question: "May direct I/O go by blocks of 4 KiB?",
    why: "O_DIRECT wants offsets and lengths in multiples of the logical block; cuFile wants 4 KiB \
          and sends what is off that grid through a bounce buffer.",
    fix: "Let I/O begin and end on the drive's logical blocks, better on 4 KiB; a drive of larger \
           ones can be formatted anew (`nvme format --lbaf`), which loses its data.",
    source: "open(2), O_DIRECT; statx(2), STATX_DIOALIGN (Linux 6.1); \
             Documentation/ABI/stable/sysfs-block, logical_block_size; NVIDIA, GPUDirect Storage \
             Best Practices Guide, unaligned I/O",
    shown_by: super::COLLECTED,
    evaluate,
};

/// cuFile's grid, and the page of x86 processors.
const PAGE: u64 = 4096;

fn evaluate(machine: &Machine) -> Vec<Found> {
    let on_devices: Vec<_> = machine
        .mounts
        .iter()
        .filter(|mount| !mount.devices.is_empty() || mount.kind == MountKind::Block)
        .collect();
    if on_devices.is_empty() {
        return vec![none_of(machine.listed.mounts, "mount on a block device")];
    }
    let findings = on_devices.into_iter().map(|mount| {
        let blocks: Option<Vec<u64>> =
            mount.devices.iter().map(|device| logical_block(machine, device)).collect();
        let largest = blocks.and_then(|blocks| blocks.into_iter().max());
        let found = match largest {
            None => Found::unknown("the logical block of its devices is not reported"),
            Some(block) if block > PAGE => {
                let observed = format!(
                    "its devices have logical blocks of {}: direct I/O of 4 KiB fails with EINVAL",
                    format_bytes(block)
                );
                Found::warn(observed, format!("use multiples of {}", format_bytes(block)))
            }
            Some(block) => Found::pass(format!("direct I/O needs multiples of {} bytes", block)),
        };
        found.at([mount.mount.mount_point.as_str()])
    });
    findings.collect()
}

/// The logical block of the device that the file system lies on: its own, since loop devices and
/// encryption have one that the drives below do not show. Where it is not reported, an array, a
/// volume or a partition has the largest of its drives' at least.
fn logical_block(machine: &Machine, name: &str) -> Option<u64> {
    let device = machine.block.iter().find(|device| device.facts.name == name)?;
    let own = device.facts.logical_block_bytes;
    let of_its_drives = matches!(device.facts.kind, BlockKind::Md | BlockKind::Partition);
    let drives = || {
        let drives = disks_below(machine, name).into_iter();
        let all: Option<Vec<u64>> = drives.map(|one| one.facts.logical_block_bytes).collect();
        all?.into_iter().max()
    };
    own.or_else(|| of_its_drives.then(drives).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Severity, sample};

    #[test]
    fn a_device_has_a_block_of_its_own_above_the_drives() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.block[0].facts.logical_block_bytes = Some(512);
        for kind in [BlockKind::Loop, BlockKind::DeviceMapper, BlockKind::Md] {
            let mut above = sample::disk("above", "");
            above.pci.clear();
            above.facts.kind = kind;
            above.facts.logical_block_bytes = Some(4096);
            above.made_of = vec!["nvme0n1".to_owned()];
            machine.block.truncate(1);
            machine.block.push(above);
            machine.mounts = vec![sample::mount("/d", "above")];
            let found = evaluate(&machine);
            assert_eq!(found[0].observed, "direct I/O needs multiples of 4096 bytes", "{kind:?}");
            machine.block[1].facts.logical_block_bytes = None;
            let wanted = if kind == BlockKind::Md { Severity::Pass } else { Severity::Unknown };
            assert_eq!(evaluate(&machine)[0].severity, wanted, "{kind:?}");
        }
    }

    fn of(bytes: Option<u64>) -> Severity {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.block[0].facts.logical_block_bytes = bytes;
        machine.mounts = vec![sample::mount("/d", "nvme0n1")];
        evaluate(&machine)[0].severity
    }

    #[test]
    fn blocks_larger_than_a_page_are_reported() {
        assert_eq!(of(Some(512)), Severity::Pass);
        assert_eq!(of(Some(4096)), Severity::Pass);
        assert_eq!(of(Some(16_384)), Severity::Warn);
        assert_eq!(of(None), Severity::Unknown);
        let mut machine = sample::gpu_and_drive_below_a_switch();
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
        let mut mount = sample::mount("/d", "nvme0n1");
        mount.devices.clear();
        machine.mounts = vec![mount];
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown, "its device is not known");
    }
}
