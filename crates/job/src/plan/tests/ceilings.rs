//! Which ceilings a run looks for.

use std::collections::BTreeSet;

use gpuio_record::{CeilingKind, CeilingPlan, CeilingSource, Towards};

use super::*;

fn ceilings(text: &str) -> Vec<CeilingPlan> {
    let plan = Bench::default().plan(&parsed(text));
    plan.unwrap_or_else(|error| panic!("{text}\n{error}")).ceilings
}

fn of(all: &[CeilingPlan], kind: CeilingKind) -> Vec<&CeilingPlan> {
    all.iter().filter(|ceiling| ceiling.kind == kind).collect()
}

fn is_measured(ceiling: &CeilingPlan) -> bool {
    matches!(ceiling.source, CeilingSource::Measured { .. })
}

#[test]
fn without_a_request_none_is_planned() {
    assert_eq!(ceilings("[a]\npath=staged\n"), []);
    assert_eq!(ceilings("[a]\npath=all\nceilings=0\n"), []);
}

/// A job by path host that pauses or keeps a rate is slower than what storage can do.
#[test]
fn a_job_that_is_held_back_is_no_ceiling() {
    for (held, is_it) in [("rw=read", true), ("thinktime=100", false), ("rate_iops=9", false)] {
        let all = ceilings(&format!("[a]\npath=host,staged\nnuma=0\ndepth=4\nceilings\n{held}\n"));
        let [storage] = of(&all, CeilingKind::Storage)[..] else { panic!("{all:#?}") };
        assert_eq!(is_measured(storage), !is_it, "{held}: {storage:?}");
    }
}

#[test]
fn all_paths_measure_by_themselves_and_share_ceilings() {
    // On one node, so that the host path's threads sit where the others' do.
    let all = ceilings("[a]\npath=all\nnuma=0\ndepth=4\n");
    let storage = of(&all, CeilingKind::Storage);
    // Calls of a library that block have a depth of one, and a ceiling of their own.
    let of_core = ["a-library-stream", "a-library-batch"];
    let of_cufile = ["a-gds-stream", "a-gds-batch", "a-gds-batch-stream"];
    let with_cufile = |ours: &[&'static str]| [ours, &of_cufile].concat();
    let with_libraries = |ours: &[&'static str]| [ours, &of_core, &of_cufile].concat();
    // One more with the depth of batches, which is not the job's.
    let [direct, cached, ..] = &storage[..] else { panic!("{storage:#?}") };
    assert_eq!(direct.source, CeilingSource::Result { job: "a-host".into() });
    assert_eq!(direct.jobs, with_libraries(&["a-staged", "a-gather", "a-resident", "a-initiated"]));
    assert_eq!(cached.source, CeilingSource::Measured { runtime_ns: 1_000_000_000 });
    assert_eq!(cached.jobs, ["a-cached", "a-managed"]);
    let link = of(&all, CeilingKind::GpuLink);
    assert_eq!(link.len(), 1, "{link:#?}");
    assert_eq!(
        link[0].jobs,
        with_cufile(&["a-staged", "a-cached", "a-mapped", "a-resident", "a-initiated", "a-gds"])
    );
    assert_eq!(link[0].direction, Some(Towards::Read));
    assert_eq!(of(&all, CeilingKind::Gather)[0].jobs, ["a-gather"]);
    assert_eq!(of(&all, CeilingKind::CpuCopy)[0].jobs, ["a-cached", "a-managed"]);
    // All that end in the GPU's own memory; managed memory is on either side.
    assert_eq!(of(&all, CeilingKind::PcieGpu)[0].jobs.len(), 13);
    let nvme = of(&all, CeilingKind::PcieNvme);
    let nvme: BTreeSet<&str> = nvme[0].jobs.iter().map(String::as_str).collect();
    let ours =
        ["a-host", "a-staged", "a-gather", "a-resident", "a-initiated", "a-library", "a-gds"];
    assert_eq!(nvme, with_libraries(&ours).into_iter().collect());
}

#[test]
fn a_host_job_that_differs_is_no_ceiling() {
    let with = |host: &str| {
        let text = format!(
            "[global]\ndirectory=/d\nnuma=0\nceilings\ndepth=4\n[h]\npath=host\n{host}\n\
             [s]\nstonewall\npath=staged\n"
        );
        let all = ceilings(&text);
        of(&all, CeilingKind::Storage)[0].source.clone()
    };
    assert_eq!(with(""), CeilingSource::Result { job: "h".into() });
    for differs in ["depth=5", "bs=4k", "rate=1m", "direct=0", "rw=randread", "numa=1", "threads=2"]
    {
        assert!(matches!(with(differs), CeilingSource::Measured { .. }), "{differs}");
    }
    // A neighbour had its share of the storage.
    let beside = "[global]\ndirectory=/d\nnuma=0\nceilings\ndepth=4\n[h]\npath=host\n\
                  [other]\n[s]\nstonewall\npath=staged\n";
    assert!(is_measured(of(&ceilings(beside), CeilingKind::Storage)[0]));
}

#[test]
fn both_directions_of_a_mix_are_bounded() {
    let all = ceilings("[a]\npath=staged\nrw=randrw\nceilings=500ms\n");
    for kind in [CeilingKind::Storage, CeilingKind::GpuLink] {
        let directions: Vec<_> = of(&all, kind).iter().map(|one| one.direction).collect();
        assert_eq!(directions, [Some(Towards::Read), Some(Towards::Write)]);
    }
    let mut names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
    let measured = |one: &&CeilingPlan| is_measured(one);
    for one in all.iter().filter(measured) {
        assert_eq!(one.source, CeilingSource::Measured { runtime_ns: 500_000_000 });
    }
}

#[test]
fn only_the_last_write_of_a_verified_set_restores_it() {
    let text = "[global]\ndirectory=/d\nceilings\nrw=write\nsize=64m\n[a]\npath=staged\nverify\n\
                [b]\nstonewall\npath=staged\nbs=64k\n[c]\nstonewall\npath=staged\nfile_prefix=c\n";
    let all = ceilings(text);
    let restores: Vec<bool> =
        of(&all, CeilingKind::Storage).iter().map(|one| one.restores).collect();
    // The third writes files that nobody verified.
    assert_eq!(restores, [false, true, false]);
}

#[test]
fn what_bounds_nothing_is_left_out_and_what_cant_be_is_reported() {
    let all = ceilings("[a]\npath=staged\nengine=null\nceilings\n");
    assert_eq!(of(&all, CeilingKind::Storage), Vec::<&CeilingPlan>::new());
    assert_eq!(of(&all, CeilingKind::PcieNvme), Vec::<&CeilingPlan>::new());
    let pool = ceilings("[a]\ndirect=0\nengine=pool\nceilings\n");
    let copy = of(&pool, CeilingKind::CpuCopy);
    assert!(matches!(&copy[0].source, CeilingSource::Absent { why } if why.contains("pool")));
    assert_eq!(of(&pool, CeilingKind::GpuLink), Vec::<&CeilingPlan>::new());
}

#[test]
fn a_gpu_that_is_named_twice_has_one_link() {
    let all = ceilings("[a]\npath=staged\ngpu=0,0\nceilings=1ms\n");
    for (kind, name) in
        [(CeilingKind::GpuLink, "link to GPU 0"), (CeilingKind::PcieGpu, "pcie above GPU 0")]
    {
        let found = of(&all, kind);
        assert_eq!((found[0].name.as_str(), found[0].gpus.as_slice()), (name, &[0][..]));
    }
}

/// No CPU copies what the GPU reads in the page cache by itself, so a copy by a CPU is no bound.
#[test]
fn a_mapping_is_bounded_by_links_alone() {
    let kinds = |text: &str| -> Vec<CeilingKind> {
        let text = format!("[a]\npath=mapped\nceilings=1\n{text}\n");
        ceilings(&text).into_iter().map(|ceiling| ceiling.kind).collect()
    };
    assert_eq!(kinds("bs=1m"), [CeilingKind::GpuLink, CeilingKind::PcieGpu]);
    assert_eq!(kinds("bs=64k"), [CeilingKind::PcieGpu], "kernels move them");
}
