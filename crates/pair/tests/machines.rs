//! Pairings of the guides' servers, from their tables.
#![allow(clippy::unwrap_used, reason = "helpers of tests: what fails there fails the test")]

#[path = "../../host/tests/tree/mod.rs"]
mod tree;

use gpuio_pair::{Load, Pairing, Wanted, format, pair};
use gpuio_record::facts::Machine;
use gpuio_topo::Topology;
use tree::table;

const DGX_2: &str = include_str!("../../host/tests/fixtures/machines/dgx-2.table");
const DGX_A100: &str = include_str!("../../host/tests/fixtures/machines/dgx-a100.table");
const DGX_STATION: &str = include_str!("../../host/tests/fixtures/machines/dgx-station.table");
const VIRTUAL: &str = include_str!("../../host/tests/fixtures/machines/virtual.table");

fn read(text: &str) -> Machine {
    gpuio_host::machine::read(&table::build(text).root())
}

fn plan(machine: &Machine, wanted: &Wanted) -> Pairing {
    pair(machine, &Topology::of(machine, &[]), wanted).unwrap()
}

#[test]
fn texts() {
    for text in [DGX_2, DGX_A100, DGX_STATION, VIRTUAL] {
        let p = plan(&read(text), &Wanted::default());
        println!("{}", format::text(&p));
        println!("{}", format::job_file(&p).unwrap_or_default());
        let _ = Load::default();
    }
}
