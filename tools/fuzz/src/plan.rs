//! Job files by way of their plans, and the lists of gpuio's own files.

use std::path::Path;
use std::sync::Arc;

use gpuio_dataset::manifest::{ManifestError, parse, print};
use gpuio_job::plan::{DirectAnswer, Facts, Gpus, TargetInfo, TargetLookup, plan};
use gpuio_job::spec::{Spec, parse_job_file};
use gpuio_record::facts::{CpuFacts, HostFacts, MemoryFacts, NumaFacts, NumaNode};
use gpuio_record::{Gpu, Plan};
use gpuio_report::format::plan::plan_text;

/// Workers beyond which an input is left out: the time and memory of a plan are those of its
/// workers, which a limit of the plan's own bounds.
const MOST_WORKERS: usize = 256;

/// The printed plan of a job file reads back as the same plan, and prints the same again.
pub(crate) fn printed(data: &[u8]) {
    let environment = |_: &str| None;
    let Ok(spec) = parse_job_file("f", data, &environment) else { return };
    let Ok(once) = planned(&spec) else { return };
    if once.jobs.iter().map(|job| job.workers.len()).sum::<usize>() > MOST_WORKERS {
        return;
    }
    let text = plan_text(&once);
    // A name that no line can hold, as one with a tab at its end: the text says so.
    if text.contains("# the next line can't hold ") {
        return;
    }
    let again = parse_job_file("f", text.as_bytes(), &environment)
        .unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    let again = planned(&again).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let (once, again) = (stripped(once), stripped(again));
    assert_eq!(once, again, "{text}");
    let twice = parse_job_file("f", plan_text(&again), &environment)
        .unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    assert_eq!(planned(&twice).map(stripped).as_ref(), Ok(&again), "{text}");
}

/// Without what only the request explains: who requested, and the reasons.
fn stripped(mut plan: Plan) -> Plan {
    for job in &mut plan.jobs {
        for choice in [&mut job.path.choice, &mut job.engine] {
            choice.requested.clear();
            choice.why = None;
        }
        job.direct_why = None;
        job.defaulted = None;
        job.via.iter_mut().for_each(|via| via.why = None);
        job.notes.clear();
        // A plan has the bytes as `io_size`, whatever they followed from.
        job.bytes_of = None;
        job.workers.iter_mut().for_each(|worker| worker.placed_by = None);
    }
    plan.left_out.clear();
    plan
}

fn planned(spec: &Spec) -> Result<Plan, gpuio_job::plan::PlanError> {
    let (host, gpus) = (host(), gpus());
    let facts = Facts {
        catalog: gpuio_io::CATALOG,
        host: &host,
        gpus: &gpus,
        targets: &Disk,
        engine_missing: &|_| None,
        cufile_missing: &|_| None,
        cufile_direct: Err("no nvidia-fs"),
    };
    plan(spec, &facts)
}

/// Files of names with `have` are there and have 1 GiB; others could be made.
struct Disk;

impl TargetLookup for Disk {
    fn look(&self, path: &str) -> Arc<TargetInfo> {
        let device = path.contains("device");
        Arc::new(TargetInfo {
            length_bytes: (device || path.contains("have")).then_some(1 << 30),
            device,
            directory: path.contains("isdir"),
            free_bytes: Some(1 << 40),
            direct: match path.contains("refuses") {
                true => DirectAnswer::Refused,
                false => DirectAnswer::Works { alignment: 512 },
            },
            link: None,
            filesystem: Some("xfs".to_owned()),
        })
    }

    fn tensors(&self, _path: &str) -> Result<Vec<(u64, u64)>, String> {
        Ok(vec![(8, 5000), (5008, 3)])
    }

    fn drive_node(&self, path: &str) -> Option<u32> {
        path.contains("node1").then_some(1)
    }
}

/// Two nodes of four CPUs.
fn host() -> HostFacts {
    let node = |node: u32| NumaNode {
        node,
        cpus: Some((4 * node..4 * node + 4).collect()),
        ..NumaNode::default()
    };
    HostFacts {
        cpu: CpuFacts {
            online: Some((0..8).collect()),
            allowed: Some((0..8).collect()),
            ..CpuFacts::default()
        },
        numa: NumaFacts { nodes: vec![node(0), node(1)] },
        memory: MemoryFacts { usable_bytes: Some(64 << 30), ..MemoryFacts::default() },
        ..HostFacts::default()
    }
}

/// Three, of which the last does not say where it is.
fn gpus() -> Gpus {
    let gpu = |index: u32| Gpu {
        index,
        name: "Test GPU".to_owned(),
        uuid: format!("GPU-{index}"),
        pci: format!("0000:0{index}:00.0"),
        numa_node: (index < 2).then_some(index),
        memory_bytes: 80 << 30,
        software: false,
        managed_hints: Some(index != 2),
        read_only_register: Some(index != 2),
    };
    Gpus::Present((0..3).map(gpu).collect())
}

/// `.gpuio-files.json`: what is believed is what a list may say, and prints as itself.
pub(crate) fn list(data: &[u8]) {
    let path = Path::new("d/.gpuio-files.json");
    match parse(path, data) {
        Ok(entries) => {
            for entry in &entries {
                let name = &entry.name;
                let inside = !name.is_empty() && !name.contains('/');
                assert!(inside && name != "." && name != "..", "{name:?} leads away");
                assert_eq!(entries.iter().filter(|other| other.name == *name).count(), 1);
            }
            let text = print(&entries).unwrap_or_default();
            assert_eq!(parse(path, &text).ok().as_ref(), Some(&entries), "it reads back");
        }
        Err(error @ ManifestError::Malformed { line, .. }) => {
            let lines = data.split(|byte| *byte == b'\n').count();
            assert!(line <= lines, "line {line} of {lines}");
            assert!(error.to_string().contains("d/.gpuio-files.json"));
        }
        Err(error) => assert!(error.to_string().contains("d/.gpuio-files.json")),
    }
}
