//! Paths to one device of which some were idle: NVMe's own multipath, and device-mapper's.

use std::collections::BTreeMap;

use gpuio_record::WarningKind;

use super::counted::Block;
use super::{FEW_BYTES, GroupContext, whole};

/// A path that carried less than a twentieth of the busiest is idle: probes of its health are a
/// few blocks.
const IDLE: f64 = 20.0;

pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let mut ways: BTreeMap<String, Vec<&Block>> = BTreeMap::new();
    for device in &seen.counted.block {
        if let Some(head) = device.way_to() {
            ways.entry(head).or_default().push(device);
        }
        if device.level.as_deref() == Some("mpath") {
            let below = device.made_of.iter().filter_map(|name| seen.counted.block(name));
            ways.entry(device.name.clone()).or_default().extend(below);
        }
    }
    ways.iter().filter_map(|(device, ways)| Some((None, idle(seen, device, ways)?))).collect()
}

fn idle(seen: &GroupContext<'_>, device: &str, ways: &[&Block]) -> Option<WarningKind> {
    let busiest = ways.iter().max_by(|a, b| a.bytes().total_cmp(&b.bytes()))?;
    if busiest.bytes() < FEW_BYTES {
        return None;
    }
    let idle = ways.iter().filter(|way| way.bytes() < busiest.bytes() / IDLE);
    let idle: Vec<String> = idle.map(|way| way.name.clone()).collect();
    (!idle.is_empty()).then(|| WarningKind::PathIdle {
        device: device.to_owned(),
        idle,
        busiest: busiest.name.clone(),
        busiest_bytes: whole(busiest.bytes()),
        policy: seen.counted.block(device).and_then(|head| head.policy.clone()),
    })
}
