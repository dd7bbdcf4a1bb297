//! Paths that need more of GPUs than that one is there: `managed` and `routed`.

use gpuio_record::{JobPlan, MemoryKind};

use super::*;

fn refusal(lines: &str) -> PlanError {
    Bench::default().refusal(&parsed(&format!("[a]\n{lines}")))
}

fn usage(lines: &str) -> String {
    let error = refusal(lines);
    assert!(matches!(error, PlanError::Usage { .. }), "{error:?}");
    error.to_string()
}

fn unavailable(lines: &str) -> String {
    let error = refusal(lines);
    assert!(matches!(error, PlanError::Unavailable { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn a_named_gpu_is_the_route() {
    let routed = job("path=routed\ngpu=0\nvia_gpu=1\nthreads=2");
    let via = routed.via.clone().unwrap();
    assert_eq!((via.gpu.index, via.why, via.any), (1, None, false));
    assert_eq!(routed.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [0]);
    assert_eq!((routed.memory, routed.notes.len()), (MemoryKind::Device, 0));
    // Threads sit where the bytes come by first.
    for worker in &routed.workers {
        assert_eq!((worker.numa_node, worker.gpu), (Some(1), Some(0)));
        assert_eq!(worker.placed_by.as_deref(), Some("the near GPU is on this node"));
    }
    assert!(job("path=routed\ngpu=0\nvia_gpu=1\nvia_peer=any").via.unwrap().any);
    let several = job("path=routed\ngpu=0,2\nvia_gpu=1\nthreads=2");
    assert_eq!(several.workers.iter().map(|w| w.gpu).collect::<Vec<_>>(), [Some(0), Some(1)]);
}

#[test]
fn else_it_is_the_one_on_the_drives_node() {
    for lines in ["filename=/node1/have8g", "directory=/node1"] {
        let via = job(&format!("path=routed\ngpu=0\n{lines}")).via.unwrap();
        assert_eq!(via.gpu.index, 1);
        assert_eq!(via.why.as_deref(), Some("it is on the drive's NUMA node 1"));
    }
    let silent = usage("path=routed\ngpu=0");
    assert!(silent.contains("does not report the drive's NUMA node"), "{silent}");
    assert!(silent.contains("name it with via_gpu=N"), "{silent}");
    let near = usage("path=routed\ngpu=0\ndirectory=/node0");
    assert!(near.contains("through GPU 0 (it is on the drive's NUMA node 0)"), "{near}");
}

#[test]
fn a_route_that_is_none_is_refused() {
    let same = usage("path=routed\ngpu=0,1\nvia_gpu=1");
    assert!(same.contains("through GPU 1 to another GPU"), "{same}");
    assert!(same.contains("on GPU 1: that is path staged"), "{same}");
    let absent = unavailable("path=routed\ngpu=0\nvia_gpu=7");
    assert!(absent.contains("there is no GPU 7: this machine has 3, numbered 0-2"), "{absent}");
    let pinned = usage("path=routed\ngpu=0\nvia_gpu=1\nmemory=pinned");
    assert!(pinned.contains("path routed ends in device memory, not in pinned"), "{pinned}");
}

#[test]
fn blocks_fan_out_to_all_gpus_that_there_are_or_that_were_named() {
    let indices = |job: &JobPlan| job.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>();
    let all = job("path=fan-out");
    assert_eq!((indices(&all), all.threads, all.fan_out.unwrap().any), (vec![0, 1, 2], 3, false));
    assert_eq!(all.workers.iter().map(|w| w.gpu).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert_eq!((all.memory, all.streams), (MemoryKind::Device, 4));
    let two = job("path=fan-out\ngpu=0,2\nthreads=5\nvia_peer=any\nstreams=1");
    assert_eq!((indices(&two), two.threads, two.streams), (vec![0, 2], 5, 1));
    assert!(two.fan_out.unwrap().any);
    assert_eq!(job("path=staged\ngpu=all").fan_out, None);
    let one = usage("path=fan-out\ngpu=1");
    assert!(one.contains("the job has one, GPU 1: that is path staged"), "{one}");
    assert!(usage("path=fan-out\ngpu=1,1").contains("the job has one"));
    for rw in ["write", "randrw"] {
        let writes = usage(&format!("path=fan-out\nrw={rw}"));
        assert!(writes.contains("path fan-out only reads"), "{writes}");
    }
    let via = usage("path=fan-out\nvia_gpu=1");
    assert!(via.contains("it concerns path routed"), "{via}");
    let peer = usage("path=staged\ngpu=0\nvia_peer=any");
    assert!(peer.contains("paths routed and fan-out"), "{peer}");
}

#[test]
fn other_paths_go_through_no_gpu() {
    assert_eq!(job("path=staged\ngpu=0").via, None);
    let nvlink = |path: &str| format!("{path}\nenable_nvlinks=1\nsize=1g\nrw=write");
    let none = usage(&nvlink("path=staged\ngpu=0"));
    assert!(none.contains("no effect on path staged"), "{none}");
    let routed = job(&nvlink("path=routed\ngpu=0\nvia_gpu=1")).notes.remove(0);
    assert!(routed.contains("via_peer says"), "{routed}");
}

#[test]
fn managed_memory_is_buffered_unless_direct_is_named() {
    let managed = job("path=managed\ngpu=0");
    assert_eq!((managed.memory, managed.direct), (MemoryKind::Managed, DirectMode::Buffered));
    assert!(managed.direct_why.unwrap().contains("EFAULT"));
    assert_eq!(job("path=managed\ngpu=0\ndirect=1").direct, DirectMode::Direct);
    assert_eq!(job("xfer_type=3\ngpu_dev_id=0\nsize=1m\nrw=write").path.choice.actual, "managed");
    let device = usage("path=managed\nmemory=device");
    assert!(device.contains("path managed ends in managed memory, not in device"), "{device}");
    let host = usage("path=host\nmemory=managed");
    assert!(host.contains("ends in host memory: memory=malloc, mmap or pinned"), "{host}");
}

#[test]
fn a_gpu_without_hints_is_reported() {
    let error = unavailable("path=managed\ngpu=2");
    assert!(error.contains("GPU 2 takes none"), "{error}");
    let bench = Bench { cufile: Some("no cuFile"), ..Bench::default() };
    let plan = bench.plan(&parsed("[a]\npath=all\ngpu=2")).unwrap();
    let out: Vec<&str> = plan.left_out.iter().map(|out| out.path.as_str()).collect();
    let none = ["gds", "gds-stream", "gds-batch", "gds-batch-stream"];
    assert_eq!(out, [["managed", "mapped", "routed", "fan-out"].as_slice(), &none].concat());
    assert!(plan.left_out[0].why.contains("CONCURRENT_MANAGED_ACCESS"));
    assert!(plan.left_out[1].why.contains("READ_ONLY_HOST_REGISTER_SUPPORTED"));
    for out in &plan.left_out[2..4] {
        assert!(out.why.contains("only where it is named"), "{out:?}");
    }
}
