//! Expectations of the guides' servers, from their tables.
#![allow(clippy::unwrap_used, reason = "helpers of tests: what fails there fails the test")]

#[path = "../../host/tests/tree/mod.rs"]
mod tree;

use gpuio_flow::{By, End, Figures, Pattern, Storage, Stream, of_machine};
use gpuio_record::Towards;
use gpuio_record::facts::Machine;
use tree::table;

const DGX_2: &str = include_str!("../../host/tests/fixtures/machines/dgx-2.table");

fn read(text: &str) -> Machine {
    gpuio_host::machine::read(&table::build(text).root())
}

fn stream(device: &str, end: End, by: By) -> Stream {
    Stream {
        name: "job".to_owned(),
        storage: vec![Storage::Device(device.to_owned())],
        end,
        by,
        towards: Towards::Read,
        block_bytes: 1 << 20,
        pattern: Pattern::Sequential,
        in_flight: None,
        asked_bytes_per_s: None,
    }
}

#[test]
fn a_drive_of_the_dgx_2_is_bound_by_its_flash_on_the_way_to_the_gpu_beside_it() {
    let machine = read(DGX_2);
    let gpu = End::Gpu("0000:39:00.0".to_owned());
    let answer = of_machine(&machine, &Figures::built_in(), &[stream("nvme2n1", gpu, By::Direct)]);
    println!("{answer:#?}");
    let expected = &answer.streams[0].expected;
    assert!((expected.bytes_per_s.unwrap() - 3.5e9).abs() < 1e7, "{expected:#?}");
    assert!(expected.bottleneck.as_deref().unwrap().starts_with("nvme2n1"));
}
