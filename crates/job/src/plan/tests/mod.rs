//! Plans of made-up machines.

use std::collections::BTreeSet;

use gpuio_record::facts::{CpuFacts, HostFacts, MemoryFacts, NumaFacts, NumaNode};
use gpuio_record::{
    BlockShare, DirectMode, Distribution, Fill, Follow, Gpu, GuardNote, JobPlan, MemoryKind, Order,
    Plan, Stop, TargetKind, VerifyMode,
};

use super::*;
use crate::spec::{JobSpec, Spec};

mod auto;
mod ceilings;
mod defaults;
mod distinguished;
mod effects;
mod errors;
mod feeds;
mod groups;
mod invariants;
mod layout;
mod machines;
mod mapped;
mod parts;
mod regions;
mod round_trip;
mod routes;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The plan without who requested what, and without reasons.
fn without_reasons(mut plan: Plan) -> Plan {
    for job in &mut plan.jobs {
        for choice in [&mut job.path.choice, &mut job.engine] {
            choice.requested.clear();
            choice.why = None;
        }
        job.direct_why = None;
        job.defaulted = None;
        job.workers.iter_mut().for_each(|worker| worker.placed_by = None);
    }
    plan
}

/// A disk where a name says what is there: `…have8g` is a file of 8 GiB, `…4k…` has an alignment of
/// 4096, and so on; everything else is absent and could be made.
struct Disk;

impl TargetLookup for Disk {
    fn look(&self, path: &str) -> std::sync::Arc<TargetInfo> {
        let says = |word: &str| path.contains(word);
        let file = says("have").then(|| {
            let digits: String = path.chars().filter(char::is_ascii_digit).collect();
            let unit = if path.ends_with('k') { KIB } else { GIB };
            digits.parse::<u64>().unwrap_or(1) * unit
        });
        std::sync::Arc::new(TargetInfo {
            length_bytes: if says("device") { Some(16 * GIB) } else { file },
            device: says("device"),
            directory: says("isdir"),
            free_bytes: Some(if says("small") { 64 * MIB } else { 1 << 40 }),
            direct: match () {
                () if says("refuses") => DirectAnswer::Refused,
                () if says("unknown") => DirectAnswer::Unknown,
                () if says("coarse") => DirectAnswer::Works { alignment: 4096 },
                () => DirectAnswer::Works { alignment: 512 },
            },
            filesystem: Some(if says("refuses") { "tmpfs" } else { "xfs" }.into()),
            link: says("link").then(|| LinkInfo {
                path: path.to_owned(),
                real: format!("/real{path}"),
                mount: Some(("xfs".to_owned(), "/real".to_owned())),
            }),
        })
    }

    fn tensors(&self, path: &str) -> Result<Vec<(u64, u64)>, String> {
        match path.contains("broken") {
            true => Err("offset 13: the header is no JSON".to_owned()),
            false => Ok(vec![(100, 5000), (5100, 3), (5103, 2897)]),
        }
    }

    fn drive_node(&self, path: &str) -> Option<u32> {
        path.contains("node1").then_some(1).or(path.contains("node0").then_some(0))
    }
}

fn node(number: u32, cpus: &[u32]) -> NumaNode {
    NumaNode { node: number, cpus: Some(cpus.to_vec()), ..NumaNode::default() }
}

/// Two nodes of four CPUs and one of memory only; this process may not use CPU 7.
fn host() -> HostFacts {
    HostFacts {
        cpu: CpuFacts {
            online: Some((0..8).collect()),
            allowed: Some((0..7).collect()),
            ..CpuFacts::default()
        },
        numa: NumaFacts {
            nodes: vec![node(0, &[0, 1, 2, 3]), node(1, &[4, 5, 6, 7]), node(2, &[])],
        },
        memory: MemoryFacts { usable_bytes: Some(64 * GIB), ..MemoryFacts::default() },
        ..HostFacts::default()
    }
}

/// GPU `n` hangs at NUMA node `n`, but GPU 2 does not say.
fn gpus() -> Gpus {
    let gpu = |index: u32| Gpu {
        index,
        name: "Test GPU".into(),
        uuid: format!("GPU-{index}"),
        pci: format!("0000:0{index}:00.0"),
        numa_node: (index < 2).then_some(index),
        memory_bytes: 80 * GIB,
        software: false,
        managed_hints: Some(index != 2),
        read_only_register: Some(index != 2),
    };
    Gpus::Present((0..3).map(gpu).collect())
}

fn no_gpus() -> Gpus {
    Gpus::Absent { why: "libcuda.so.1: not found".into() }
}

/// A machine to plan for.
#[derive(Debug)]
struct Bench {
    host: HostFacts,
    gpus: Gpus,
    missing: &'static [&'static str],
    cufile: Option<&'static str>,
    direct: Result<&'static str, &'static str>,
}

impl Default for Bench {
    fn default() -> Bench {
        Bench {
            host: host(),
            gpus: gpus(),
            missing: &[],
            cufile: None,
            direct: Err("no nvidia-fs"),
        }
    }
}

impl Bench {
    fn plan(&self, spec: &Spec) -> Result<Plan, PlanError> {
        let missing =
            |name: &str| self.missing.contains(&name).then(|| format!("{name} is switched off"));
        let facts = Facts {
            catalog: gpuio_io::CATALOG,
            host: &self.host,
            gpus: &self.gpus,
            targets: &Disk,
            engine_missing: &missing,
            cufile_missing: &|_| self.cufile.map(str::to_owned),
            cufile_direct: self.direct,
        };
        plan(spec, &facts)
    }

    fn jobs(&self, text: &str) -> Vec<JobPlan> {
        self.plan(&parsed(text)).unwrap_or_else(|error| panic!("{text}\n{error}")).jobs
    }

    fn job(&self, text: &str) -> JobPlan {
        let mut jobs = self.jobs(&format!("[a]\n{text}"));
        assert_eq!(jobs.len(), 1, "{text}");
        jobs.remove(0)
    }

    fn refusal(&self, spec: &Spec) -> PlanError {
        match self.plan(spec) {
            Ok(plan) => panic!("planned: {plan:#?}"),
            Err(error) => error,
        }
    }
}

fn parsed(text: &str) -> Spec {
    crate::spec::parse_job_file("f", text, &|_| None).unwrap_or_else(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{text}\n{}", errors.join("\n"))
    })
}

fn job(text: &str) -> JobPlan {
    Bench::default().job(text)
}

fn sizes(bytes: u64) -> Vec<BlockShare> {
    vec![BlockShare { min_bytes: bytes, max_bytes: bytes, step_bytes: 0, percent: 100 }]
}
