//! Where threads run.

use super::*;

/// CPUs, node and GPU of every thread.
fn placements(job: &JobPlan) -> Vec<(Vec<u32>, Option<u32>, Option<u32>)> {
    job.workers.iter().map(|w| (w.cpus.clone(), w.numa_node, w.gpu)).collect()
}

fn reasons(job: &JobPlan) -> Vec<Option<&str>> {
    job.workers.iter().map(|w| w.placed_by.as_deref()).collect()
}

const NODE_0: [u32; 4] = [0, 1, 2, 3];
/// CPU 7 is not allowed.
const NODE_1: [u32; 3] = [4, 5, 6];

#[test]
fn without_a_gpu_threads_run_anywhere() {
    let job = job("threads=2");
    assert_eq!(placements(&job), vec![(vec![], None, None); 2]);
    assert_eq!(reasons(&job), [None, None]);
}

#[test]
fn threads_sit_at_their_gpu() {
    let job = job("gpu=1\nthreads=2");
    assert_eq!(placements(&job), vec![(NODE_1.to_vec(), Some(1), Some(0)); 2]);
    assert_eq!(reasons(&job), [Some("its GPU is on this node"); 2]);
}

#[test]
fn threads_take_two_gpus_in_turn() {
    let job = job("gpu=1,0\nthreads=3");
    let at_1 = (NODE_1.to_vec(), Some(1), Some(0));
    let at_0 = (NODE_0.to_vec(), Some(0), Some(1));
    assert_eq!(placements(&job), [at_1.clone(), at_0, at_1]);
    assert_eq!(job.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_gpu_that_does_not_report_its_node_leaves_its_threads_free() {
    assert_eq!(placements(&job("gpu=2")), [(vec![], None, Some(0))]);
}

#[test]
fn a_named_node_wins_over_the_gpus() {
    let job = job("gpu=1\nnuma=0");
    assert_eq!(placements(&job), [(NODE_0.to_vec(), Some(0), Some(0))]);
    assert_eq!(reasons(&job), [Some("the NUMA node was named")]);
}

/// fio's HOWTO: each thread gets one CPU, and with more threads than CPUs the list begins again.
/// The plan's text says it again.
#[test]
fn split_cpus_are_dealt_out_in_turn() {
    let lines = "cpus_allowed=2,5-6\nnumjobs=5";
    let job = job(&format!("{lines}\ncpus_allowed_policy=split"));
    let cpus: Vec<u32> = job.workers.iter().map(|worker| worker.cpus[0]).collect();
    assert_eq!(cpus, [2, 5, 6, 2, 5]);
    assert!(job.workers.iter().all(|worker| worker.cpus.len() == 1));
    let printed = |job: &JobPlan| {
        let lines = crate::spec::plan_lines(job).into_iter();
        let cpus = lines.filter(|(key, _)| key.name.starts_with("cpus_allowed"));
        cpus.map(|(key, value)| format!("{}={value}", key.name)).collect::<Vec<_>>()
    };
    assert_eq!(printed(&job), ["cpus_allowed=2,5-6", "cpus_allowed_policy=split"]);
    let shared = self::job(&format!("{lines}\ncpus_allowed_policy=shared"));
    assert_eq!(printed(&shared), ["cpus_allowed=2,5-6"]);
    assert_eq!(shared.workers[4].cpus, [2, 5, 6]);
}

#[test]
fn named_cpus_win_over_everything() {
    let job = job("gpu=0\nnuma=1\ncpus=5-6");
    assert_eq!(placements(&job), [(vec![5, 6], Some(1), Some(0))]);
    assert_eq!(reasons(&job), [Some("the CPUs were named")]);
}

#[test]
fn on_the_host_path_a_named_gpu_still_says_where() {
    assert_eq!(placements(&job("path=host\ngpu=1")), [(NODE_1.to_vec(), Some(1), None)]);
    let gdsio = "xfer_type=1\ngpu_dev_id=0\nsize=1g\nrw=write\ndirectory=/d";
    assert_eq!(placements(&job(gdsio)), [(NODE_0.to_vec(), Some(0), None)]);
    let job = job("path=host\ngpu=all\nthreads=3");
    let nodes: Vec<Option<u32>> = job.workers.iter().map(|w| w.numa_node).collect();
    assert_eq!(nodes, [Some(0), Some(1), None]);
}

#[test]
fn a_gpus_node_whose_cpus_are_not_ours_pins_nobody() {
    let mut bench = Bench::default();
    bench.host.cpu.allowed = Some(vec![0, 1]);
    assert_eq!(placements(&bench.job("gpu=1")), [(vec![], None, Some(0))]);
}

#[test]
fn a_kernel_without_numa_is_all_node_0() {
    let mut bench = Bench::default();
    bench.host.numa.nodes.clear();
    let job = bench.job("numa=0");
    assert_eq!(placements(&job), [(vec![], Some(0), None)]);
    assert_eq!(reasons(&job), [Some("the kernel has no NUMA nodes: all CPUs")]);
    assert_eq!(placements(&bench.job("gpu=1")), [(vec![], None, Some(0))]);
}

#[test]
fn what_the_kernel_does_not_say_of_allowed_cpus_forbids_none() {
    let mut bench = Bench::default();
    bench.host.cpu.allowed = None;
    assert_eq!(placements(&bench.job("cpus=7")), [(vec![7], None, None)]);
}
