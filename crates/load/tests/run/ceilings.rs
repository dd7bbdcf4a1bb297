//! Ceilings measured beside jobs.

use gpuio_record::{Ceiling, CeilingKind, EndedHow, VerifyMode};

use crate::lab::{Lab, Stop};

fn one(all: &[Ceiling], kind: CeilingKind) -> &Ceiling {
    all.iter().find(|ceiling| ceiling.plan.kind == kind).unwrap()
}

#[test]
fn every_kind_is_found_on_the_software_gpu() {
    let lab = Lab::with_gpu();
    let text = "[global]\ndirectory=${DIR}\nsize=4m\nbs=64k\nruntime=100ms\nceilings=50ms\n\
                engine=psync\n[a]\npath=cached\nthreads=2\n[g]\nstonewall\npath=gather\ndirect=0\n\
                rw=write\n";
    let ran = lab.run(text);
    assert_eq!(ran.ended, EndedHow::Complete);
    assert!(ran.setup.ceilings_ns > 50_000_000);
    use CeilingKind::{CpuCopy, Gather, GpuLink, PcieGpu, Storage};
    for kind in [Storage, GpuLink, Gather, CpuCopy] {
        let ceiling = one(&ran.ceilings, kind);
        assert!(ceiling.bytes_per_s.is_some_and(|rate| rate > 0.0), "{ceiling:#?}");
        assert!(ceiling.iops.is_some_and(|rate| rate > 0.0), "{ceiling:#?}");
        assert_eq!(ceiling.plan.software_gpu, matches!(kind, GpuLink | Gather));
    }
    assert!(one(&ran.ceilings, PcieGpu).why.as_ref().unwrap().contains("software GPU"));
    for (job, side) in [(0, &ran.jobs[0].read), (1, &ran.jobs[1].write)] {
        let of = side.of_ceiling.as_ref().unwrap_or_else(|| panic!("{job}"));
        let ceiling = ran.ceilings.iter().find(|one| one.plan.name == of.ceiling).unwrap();
        let rate = ceiling.bytes_per_s.unwrap();
        assert!((of.percent - side.bytes_per_s / rate * 100.0).abs() < 1e-6);
    }
    assert_eq!(ran.jobs[0].write.of_ceiling, None);
    // Jobs and their warnings are those of the plan alone.
    assert_eq!((ran.jobs.len(), ran.totals.len()), (2, 2));
    let lines = lab.diary.lines.lock().unwrap();
    let done = lines.iter().rposition(|line| line.starts_with("done")).unwrap();
    let first = lines.iter().position(|line| line.starts_with("ceiling")).unwrap();
    assert!(done < first, "{lines:?}");
}

#[test]
fn without_a_gpu_the_rest_is_found() {
    let ran = Lab::new().run(
        "[a]\ndirectory=${DIR}\nsize=1m\nbs=4k\nruntime=50ms\nceilings=20ms\ndirect=0\n\
         engine=psync\n",
    );
    assert_eq!(ran.ceilings.len(), 1, "{:#?}", ran.ceilings);
    let of = ran.jobs[0].read.of_ceiling.as_ref().unwrap();
    assert_eq!(of.kind, CeilingKind::CpuCopy);
    assert!(of.percent > 0.0);
}

#[test]
fn a_ceiling_that_fails_is_a_row_and_the_results_stand() {
    let lab = Lab::with_gpu();
    // One pass fails too seldom to be given up; the ceiling goes on until it is.
    let ran = lab.run(
        "[a]\npath=staged\ndirectory=${DIR}\nsize=1m\nbs=4k\nloops=1\nceilings=1s\nengine=psync\n\
         inject=eio=100%\n",
    );
    let storage = one(&ran.ceilings, CeilingKind::Storage);
    assert_eq!(storage.bytes_per_s, None);
    let why = storage.why.as_ref().unwrap();
    assert!(why.contains("1,000 I/Os failed; first: "), "{why}");
    assert_eq!((ran.jobs.len(), ran.jobs[0].failed), (1, 256));
}

#[test]
fn an_interrupt_during_a_ceiling_keeps_results() {
    let lab = Lab::with_gpu_stopping(Stop::Ceiling { after_ms: 50 });
    let ran = lab.run(
        "[a]\npath=staged\ndirectory=${DIR}\nsize=1m\nbs=64k\nloops=4\nceilings=600s\n\
         engine=psync\ndirect=0\n",
    );
    assert_eq!((ran.ended, ran.jobs[0].ended), (EndedHow::Interrupted, EndedHow::Complete));
    assert_eq!(ran.jobs[0].read.ios, 64);
    assert!(ran.setup.ceilings_ns < 300_000_000_000);
    let whys: Vec<&str> = ran.ceilings.iter().filter_map(|one| one.why.as_deref()).collect();
    assert_eq!(whys.len(), ran.ceilings.len(), "{:#?}", ran.ceilings);
    assert_eq!(whys[0], "it was interrupted");
    assert!(whys[1..3].iter().all(|why| why.contains("not measured: the run was interrupted")));
    let lines = lab.diary.lines.lock().unwrap();
    assert_eq!(lines.iter().filter(|line| line.starts_with("ceiling")).count(), 1);
}

#[test]
fn an_interrupt_during_copies_keeps_results() {
    let lab = Lab::stopping(Stop::Ceiling { after_ms: 50 });
    let ran = lab.run(
        "[a]\ndirectory=${DIR}\nsize=1m\nbs=64k\nloops=4\nceilings=60s\nengine=psync\ndirect=0\n",
    );
    assert_eq!((ran.ended, ran.jobs[0].ended), (EndedHow::Interrupted, EndedHow::Complete));
    assert_eq!(ran.ceilings[0].why.as_deref(), Some("it was interrupted"));
}

#[test]
fn verified_files_hold_their_pattern_after_write_ceilings() {
    let lab = Lab::with_gpu();
    let text = "[global]\ndirectory=${DIR}\nsize=1m\nbs=64k\nruntime=30ms\nceilings=30ms\nkeep=1\n\
                engine=psync\npath=staged\nrw=write\n[a]\nverify\n[b]\nstonewall\nbs=4k\n";
    let ran = lab.run(text);
    let writes = |one: &&Ceiling| one.plan.kind == CeilingKind::Storage;
    let restores: Vec<bool> =
        ran.ceilings.iter().filter(writes).map(|one| one.plan.restores).collect();
    assert_eq!(restores, [false, true]);
    // Nobody makes the file anew, and every word of it is right.
    let mut again = lab.plan("[a]\ndirectory=${DIR}\nsize=1m\nbs=64k\nloops=1\nverify\nkeep=1\n");
    let read = lab.carry_out(&mut again).unwrap();
    assert_eq!(again.jobs[0].targets[0].guard, gpuio_record::GuardNote::Ours);
    assert_eq!(again.jobs[0].verify, VerifyMode::Pass);
    let found = read.jobs[0].verify.as_ref().unwrap();
    assert!(found.complete && found.bad_blocks == 0 && found.pass_bytes == 1 << 20, "{found:?}");
}

#[test]
fn ceilings_that_read_or_move_nothing_leave_the_files_alone() {
    let lab = Lab::with_gpu();
    let path = lab.file("foreign");
    std::fs::write(&path, vec![7_u8; 1 << 20]).unwrap();
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    let ran = lab.run(&format!(
        "[a]\nfilename={}\npath=staged\nbs=64k\nloops=1\nceilings=20ms\nengine=psync\n",
        path.display()
    ));
    assert!(one(&ran.ceilings, CeilingKind::Storage).bytes_per_s.is_some());
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert_eq!(std::fs::read(&path).unwrap(), vec![7_u8; 1 << 20]);
}
