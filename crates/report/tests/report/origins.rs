//! The machine of a record: proven, disproven, or unknown.

use gpuio_record::Record;
use gpuio_record::facts::{Fact, GpuFacts, Machine};
use gpuio_report::set::{Candidate, Origin, origin};

use crate::records;

/// The machine that a record was made on, as it would be read there.
fn machine(record: &Record) -> Machine {
    let gpus = record.plan.jobs.iter().flat_map(|job| &job.gpus);
    let gpus = gpus.filter(|gpu| !gpu.software).map(|gpu| GpuFacts {
        pci: Some(gpu.pci.clone()),
        uuid: Fact::Known(gpu.uuid.clone()),
        ..GpuFacts::default()
    });
    Machine { gpus: gpus.collect(), host: record.host.clone(), ..Machine::default() }
}

fn live<'a>(machine: &'a Machine, boot: Option<&'a str>) -> Candidate<'a> {
    Candidate { machine, boot, captured: false }
}

fn captured(machine: &Machine) -> Candidate<'_> {
    Candidate { machine, boot: None, captured: true }
}

fn here(found: &Origin) -> bool {
    matches!(found, Origin::Here(_))
}

fn elsewhere(found: &Origin) -> bool {
    matches!(found, Origin::Elsewhere(_))
}

#[test]
fn the_same_boot_or_the_same_gpus_prove_it() {
    let host = records::host_quick();
    let there = machine(&host);
    assert!(here(&origin(&host, live(&there, host.boot.as_deref()))));
    for boot in [None, Some("another")] {
        let found = origin(&host, live(&there, boot));
        assert!(matches!(&found, Origin::Unknown(why) if why.contains("no hardware GPU")));
    }
    let with_gpu = records::beside();
    let there = machine(&with_gpu);
    assert!(here(&origin(&with_gpu, live(&there, None))), "a GPU outlives a boot");
    let mut of_before = with_gpu.clone();
    of_before.boot = None;
    assert!(here(&origin(&of_before, live(&there, Some("another")))));
}

#[test]
fn other_processors_and_other_gpus_disprove_it() {
    let record = records::beside();
    let boot = record.boot.as_deref();
    let mut there = machine(&record);
    there.host.cpu.model = Some("Another CPU".to_owned());
    assert!(elsewhere(&origin(&record, live(&there, boot))));
    let mut there = machine(&record);
    there.gpus[0].uuid = Fact::Known("GPU-other".to_owned());
    assert!(elsewhere(&origin(&record, live(&there, boot))));
    there.gpus.clear();
    assert!(elsewhere(&origin(&record, live(&there, boot))));
    // The software GPU is no part of a machine.
    let software = records::software();
    assert!(here(&origin(&software, live(&machine(&software), software.boot.as_deref()))));
}

/// A capture has other UUIDs in the place of the real ones, and texts may lack GPUs.
#[test]
fn a_capture_is_disproven_only_by_what_it_keeps() {
    let record = records::beside();
    let mut there = machine(&record);
    there.gpus[0].uuid = Fact::Known("GPU-token".to_owned());
    assert!(matches!(origin(&record, captured(&there)), Origin::Unknown(_)));
    there.gpus[0].pci = Some("0000:99:00.0".to_owned());
    assert!(elsewhere(&origin(&record, captured(&there))));
    there.gpus.clear();
    assert!(matches!(origin(&record, captured(&there)), Origin::Unknown(_)));
}
