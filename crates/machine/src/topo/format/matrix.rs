//! The matrix of GPUs, network cards and drives.

use std::collections::BTreeSet;

use gpuio_base::document::{Columns, Document, Look};

use crate::topo::{Class, DeviceKind, Topology};

/// Who is how far from whom, with a legend of the classes that occur; nothing without devices.
/// Where there are GPUs, drives are rows only, and devices of which nothing is known are left out:
/// JSON has all pairs.
pub(super) fn matrix(page: &mut Document, topology: &Topology) {
    let count = topology.devices.len();
    let cell = |a: usize, b: usize| {
        topology.route(a, b).map_or_else(|| Class::X.name().to_owned(), crate::topo::Route::cell)
    };
    let known = |a: usize| (0..count).any(|b| a != b && cell(a, b) != "?");
    let shown: Vec<usize> = (0..count).filter(|index| known(*index)).collect();
    let gpus = topology.of_kind(DeviceKind::Gpu).next().is_some();
    let drive = |index: usize| topology.devices[index].kind == DeviceKind::Drive;
    let columns = || shown.iter().copied().filter(|index| !gpus || !drive(*index));
    let name = |index: usize| topology.devices[index].name.clone();
    let mut table = Columns::<usize>::new().words("", |a| name(*a)).key("from");
    for b in columns() {
        table = table.words(name(b), move |a| cell(*a, b));
    }
    page.begin("matrix", "MATRIX").table(table.table("matrix", &shown).look(Look::Indented(2)));
    let cells: BTreeSet<String> =
        shown.iter().flat_map(|a| columns().map(|b| cell(*a, b))).collect();
    let classes = Class::ALL.map(|class| (class.name(), class.meaning()));
    let mut legend: Vec<(&str, &str)> =
        classes.into_iter().filter(|(class, _)| cells.contains(*class)).collect();
    if cells.iter().any(|cell| cell.starts_with("NV")) {
        legend.push(("NV#", "that many NVLinks"));
    }
    if cells.contains("?") {
        legend.push(("?", "not known, see the notes"));
    }
    let legend = Columns::<(&str, &str)>::new()
        .words("", |(class, _)| *class)
        .key("class")
        .words("", |(_, meaning)| *meaning)
        .key("meaning")
        .table("legend", legend)
        .look(Look::Indented(2));
    page.begin("", "").table(legend);
}
