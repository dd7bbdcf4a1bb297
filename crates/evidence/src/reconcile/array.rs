//! Members of an array that took unequal parts.

use gpuio_record::WarningKind;
use gpuio_record::facts::BlockKind;

use super::counted::Block;
use super::{FEW_BYTES, GroupContext, whole};

/// A member below half of the mean is a finding: chunks spread evenly over all but the last stripe,
/// and what chance leaves with the least traffic that is checked is far less.
pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let arrays = seen.counted.block.iter().filter(|device| is_array(device));
    arrays.filter_map(|array| Some((None, unequal(seen, array)?))).collect()
}

fn is_array(device: &Block) -> bool {
    let mapped = device.kind == Some(BlockKind::DeviceMapper);
    let array = device.kind == Some(BlockKind::Md);
    let ways = device.level.as_deref() == Some("mpath");
    (mapped || array) && !ways && device.made_of.len() > 1
}

fn unequal(seen: &GroupContext<'_>, array: &Block) -> Option<WarningKind> {
    let member = |name: &String| seen.counted.block(name);
    // One that could not be counted leaves the mean open.
    let members: Vec<&Block> = array.made_of.iter().map(member).collect::<Option<_>>()?;
    let busiest = members.iter().max_by(|a, b| a.bytes().total_cmp(&b.bytes()))?;
    let least = members.iter().min_by(|a, b| a.bytes().total_cmp(&b.bytes()))?;
    let count = u32::try_from(members.len()).ok()?;
    let mean = members.iter().map(|one| one.bytes()).sum::<f64>() / f64::from(count);
    (mean * f64::from(count) >= FEW_BYTES && least.bytes() < mean / 2.0).then(|| {
        WarningKind::ArrayPartUsed {
            array: array.name.clone(),
            level: array.level.clone(),
            members: count,
            busiest: busiest.name.clone(),
            busiest_bytes: whole(busiest.bytes()),
            least: least.name.clone(),
            least_bytes: whole(least.bytes()),
        }
    })
}
