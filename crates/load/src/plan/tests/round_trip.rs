//! The printed plan is a job file that plans the same run again.

use super::*;

/// Without what only the asking explains: who asked, and the reasons.
fn stripped(mut plan: Plan) -> Plan {
    for job in &mut plan.jobs {
        for choice in [&mut job.path.choice, &mut job.engine] {
            choice.asked.clear();
            choice.why = None;
        }
        job.direct_why = None;
        job.defaulted = None;
        job.via.iter_mut().for_each(|via| via.why = None);
        job.notes.clear();
        job.workers.iter_mut().for_each(|worker| worker.placed_by = None);
    }
    plan.left_out.clear();
    plan
}

fn comes_back(bench: &Bench, text: &str) {
    let once = bench.plan(&parsed(text)).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let printed = gpuio_report::format::plan::plan_text(&once);
    let again = bench.plan(&parsed(&printed)).unwrap_or_else(|error| panic!("{printed}\n{error}"));
    let (once, again) = (stripped(once), stripped(again));
    for (first, second) in once.jobs.iter().zip(&again.jobs) {
        assert_eq!(first, second, "{printed}");
    }
    assert_eq!(once, again, "{printed}");
    assert_eq!(printed_again(bench, &printed), stripped(once), "a third time");
}

fn printed_again(bench: &Bench, printed: &str) -> Plan {
    let plan = bench.plan(&parsed(printed)).unwrap();
    let text = gpuio_report::format::plan::plan_text(&plan);
    stripped(bench.plan(&parsed(&text)).unwrap())
}

const CASES: &[&str] = &[
    "[a]\n",
    "[a]\ndirectory=/d\n",
    "[a]\ndirectory=/refuses\n",
    "[a]\ndirectory=/d\npath=staged\ngpu=0,1\nthreads=4\nsize=2g\nrw=randread\nbs=4k\n",
    "[a]\npath=host,staged\ndirectory=/d\nthreads=2\n[b]\nstonewall\ndirectory=/d\nrw=write\n\
     verify=pass\nsize=64m\nio_size=32m\n",
    "[a]\nfilename=/have1:/have2\nrw=randrw\nrwmixread=30\nbssplit=4k/60:64k/40\n\
     random_distribution=zipf:1.2\nrate=10m\nrate_iops=500\nrate_process=poisson\nthreads=4\n\
     startdelay=1.5\nramp_time=250ms\nruntime=3\n",
    "[a]\nfilename=/have1\nrw=randread\nunaligned\nbs=1M:4M:1M\nnorandommap\nthreads=3\n\
     cpus_allowed=1-3\nnuma_cpu_nodes=1\nsize=1g\noffset=4k\n",
    "[a]\nxfer_type=2\nrw=randread\nbs=4k\nsize=1g\nnum_threads=2\ndirectory=/d\nnuma_node=1\n\
     gpu_dev_id=0\nruntime=5\n[b]\nxfer_type=4\nrw=write\nbs=1M\nsize=1g\nnum_threads=2\n\
     directory=/e\ngpu_dev_id=1\n",
    "[a]\npath=cached\ngpu=all\nfilename=/have3\nthreads=2\nloops=3\nsize=128m\nsync=0\nkeep=1\n\
     refill=1\nfill=random\nrw=write\n",
    "[a]\npath=host\nmemory=pinned\ndirectory=/d\n[a]\ndirectory=/d\nblockalign=1m\nbs=64k\n\
     rw=read\nengine=psync\ndirect=0\ntime_based=0\nruntime=9\n",
    "[a]\nxfer_type=1\ngpu_dev_id=1\nnum_threads=2\ndirectory=/d\nsize=1g\nbs=1m\nrw=read\n",
    "[a]\nioengine=libaio\niodepth=16\nfilename=/have8g\nnumjobs=2\nrw=randrw\nsize=1g\n\
     direct=1\nruntime=4\ntime_based\n",
    "[a]\nioengine=sync\nfilename=/have8g\nnumjobs=2\nsize=1g\n",
    "[a]\npath=all\ndirectory=/d\n[b]\n[c]\npath=host,cached\n[d]\nstonewall\n",
    "[a]\n[a]\n[a#2]\n",
    "[a]\npath=all\nceilings=off\n[b]\npath=staged,host\nceilings=250ms\nrw=randrw\nverify\n\
     [c]\nceilings\ndirect=0\n",
    "[a]\ngpu=2,1\npath=staged\nmemory=vmm\nstreams=3\nverify=rewrite\nrefill=1\nrw=randwrite\n\
     sync=1\ninject=eio=1%,delay=2ms@10%\nseed=99\nshared_fd=1\nfilename=/have8g\nthreads=2\n",
    "[a]\npath=gather\nrw=randread\nbs=4k\n[b]\npath=gather\nbs=64k\ndepth=7\n[c]\npath=gather\n\
     gather_batch=5\ngather_scatter=1\n[d]\npath=gather\nrw=randwrite\ngather_scatter=0\ndepth=2\n",
    "[a]\npath=gds-stream\nrw=randrw\n[b]\npath=gds-batch\nbatch=6\ndepth=13\n[c]\nxfer_type=6\n\
     batch=8\nmix_percent=30\nsize=1g\n[d]\npath=gds-batch-stream\ndepth=40\nstreams=2\n",
    "[a]\npath=managed\ngpu=1\n[b]\npath=routed\ngpu=0,2\nvia_gpu=1\nvia_peer=any\nthreads=2\n\
     [c]\npath=routed\ngpu=0\ndirectory=/node1\n",
    "[a]\nsteadystate=iops_slope:1.5%\nss_dur=3\nss_ramp=500ms\nss_interval=250ms\nruntime=20\n\
     [b]\nss=lat:50us\ncache_alike\n[c]\nstonewall\nss=bw:1m\nloops=2\n",
    "[a]\nrw=randread\nrandom_distribution=normal:12.5\nbs=8k\n[b]\nrw=randread\n\
     random_distribution=pareto:0.3\nbs=512\n",
];

#[test]
fn plans_come_back_on_a_machine_with_gpus() {
    CASES.iter().for_each(|text| comes_back(&Bench::default(), text));
}

#[test]
fn plans_come_back_on_a_machine_without() {
    let bench = Bench { gpus: no_gpus(), missing: &["io_uring"], ..Bench::default() };
    let planned = CASES.iter().filter(|text| bench.plan(&parsed(text)).is_ok());
    let count = planned.inspect(|text| comes_back(&bench, text)).count();
    assert!(count >= 7, "only {count} cases need no GPU");
}
