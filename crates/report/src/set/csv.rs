//! The rows of all records, with the axes of sweeps.

use super::Set;
use crate::format::csv::{Lines, columns};
use crate::workload::sides;

/// How the header line begins.
pub(super) const MARK: &str = "job,group,path,gpu_software,";

/// The columns of `csv` for one record, then `record` (its name) and `axis_KEY` for each axis of
/// the records' sweeps; empty if a record is of another sweep.
pub(super) fn render(set: &Set) -> String {
    let keys = set.members.iter().flat_map(|member| &member.at);
    let axes = gpuio_document::unique(keys.map(|(key, _)| key.as_str()));
    let mut lines = Lines::new();
    let columns = columns(&set.percentiles());
    let names = columns.iter().map(|column| column.name.to_string());
    let own = std::iter::once("record".to_owned());
    lines.push(names.chain(own).chain(axes.iter().map(|key| format!("axis_{key}"))));
    for member in &set.members {
        let place = |key: &&str| {
            let at = member.at.iter().find(|(name, _)| name == key);
            at.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        for side in sides(&member.record) {
            let row = columns.iter().map(|column| column.cell(&side));
            let own = std::iter::once(member.name.clone());
            lines.push(row.chain(own).chain(axes.iter().map(place)));
        }
    }
    lines.text()
}
