//! The matrix of GPUs, network cards and drives.

use std::collections::BTreeSet;

use crate::topo::{Class, DeviceKind, Topology};
use gpuio_table::indented_columns;

/// Who is how far from whom, with a legend of the classes that occur; empty without devices. Where
/// there are GPUs, drives are rows only, and devices of which nothing is known are left out:
/// JSON has all pairs.
#[must_use]
pub fn matrix(topology: &Topology) -> String {
    let count = topology.devices.len();
    let cell = |a: usize, b: usize| {
        topology.route(a, b).map_or_else(|| Class::X.name().to_owned(), crate::topo::Route::cell)
    };
    let known = |a: usize| (0..count).any(|b| a != b && cell(a, b) != "?");
    let shown: Vec<usize> = (0..count).filter(|index| known(*index)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let gpus = topology.of_kind(DeviceKind::Gpu).next().is_some();
    let drive = |index: usize| topology.devices[index].kind == DeviceKind::Drive;
    let columns = || shown.iter().copied().filter(|index| !gpus || !drive(*index));
    let name = |index: usize| topology.devices[index].name.clone();
    let mut rows = vec![std::iter::once(String::new()).chain(columns().map(name)).collect()];
    for a in &shown {
        let cells = columns().map(|b| cell(*a, b));
        rows.push(std::iter::once(name(*a)).chain(cells).collect::<Vec<_>>());
    }
    let cells: BTreeSet<&String> = rows.iter().skip(1).flat_map(|row| &row[1..]).collect();
    let mut legend: Vec<Vec<String>> = Vec::new();
    for class in Class::ALL {
        if cells.iter().any(|cell| *cell == class.name()) {
            legend.push(vec![class.name().to_owned(), class.meaning().to_owned()]);
        }
    }
    if cells.iter().any(|cell| cell.starts_with("NV")) {
        legend.push(vec!["NV#".to_owned(), "that many NVLinks".to_owned()]);
    }
    if cells.iter().any(|cell| *cell == "?") {
        legend.push(vec!["?".to_owned(), "not known, see the notes".to_owned()]);
    }
    format!("{}\n{}", indented_columns(&rows), indented_columns(&legend))
}
