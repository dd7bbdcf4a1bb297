//! The matrix of GPUs, network cards and drives.

use std::collections::BTreeSet;

use super::grid::grid;
use crate::{Class, Topology};

/// Who is how far from whom, with a legend of the classes that occur; empty without devices.
#[must_use]
pub fn matrix(topology: &Topology) -> String {
    if topology.devices.len() < 2 {
        return String::new();
    }
    let names = || topology.devices.iter().map(|device| device.name.clone());
    let mut rows: Vec<Vec<String>> = vec![std::iter::once(String::new()).chain(names()).collect()];
    for (a, device) in topology.devices.iter().enumerate() {
        let cells = (0..topology.devices.len()).map(|b| match topology.route(a, b) {
            Some(route) => route.cell(),
            None => Class::X.name().to_owned(),
        });
        rows.push(std::iter::once(device.name.clone()).chain(cells).collect());
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
    format!("{}\n{}", grid(&rows), grid(&legend))
}
