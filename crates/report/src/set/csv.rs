//! The rows of all records, with the axes of sweeps.

use gpuio_base::document::{csv_of, unique};

use gpuio_record::Side;

use super::Set;
use crate::doubts::{self, Held};
use crate::format::csv::{DOUBT, columns};
use crate::workload::sides;

/// How the header line begins.
pub(super) const MARK: &str = "job,group,path,gpu_software,";

/// The columns of `csv` for one record, then `record` (its name), `doubt` (why its figures are not
/// to be trusted, empty where nothing is wrong), and `axis_KEY` for each axis of the records'
/// sweeps; empty if a record is of another sweep.
pub(super) fn render(set: &Set) -> String {
    let keys = set.members.iter().flat_map(|member| &member.at);
    let axes = unique(keys.map(|(key, _)| key.as_str()));
    let columns = columns(&set.percentiles());
    let names = columns.iter().map(|column| column.name.to_string());
    let heads = names.chain(["record".to_owned(), DOUBT.to_owned()]);
    let heads: Vec<String> = heads.chain(axes.iter().map(|key| format!("axis_{key}"))).collect();
    let lacks = set.not_here();
    let of_member = |member: &super::Member| {
        let place = |key: &&str| {
            let at = member.at.iter().find(|(name, _)| name == key);
            at.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let line = |side: Side<'_>| {
            let row = columns.iter().map(|column| column.cell(&side));
            let record = &member.record;
            let held = Held { recheck: &member.recheck, lacks: &lacks };
            let doubt = doubts::in_words(&held, record, side.plan, side.result);
            row.chain([member.name.clone(), doubt]).chain(axes.iter().map(place)).collect()
        };
        sides(&member.record).map(line).collect::<Vec<Vec<String>>>()
    };
    csv_of([heads].into_iter().chain(set.members.iter().flat_map(of_member)))
}
