use std::path::Path;
use std::sync::atomic::AtomicBool;

use gpuio_base::pattern;
use gpuio_host::Root;
use gpuio_record::{JobPlan, JobResult, Plan, VerifyOutcome};
use proptest::prelude::*;

use super::DataSet;
use gpuio_base::pattern::other_salt;
use gpuio_dataset::ownership::Permit;
use gpuio_dataset::{Looks, manifest};
use gpuio_job::plan::read_back;
use gpuio_testkit::jobs::{job, result};

/// On the file system of the build, which mostly does O_DIRECT; `/tmp` is often tmpfs.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
}

fn plan(jobs: Vec<JobPlan>) -> Plan {
    Plan {
        name: None,
        jobs,
        interval_ns: 1_000_000_000,
        left_out: Vec::new(),
        ceilings: Vec::new(),
        cufile: std::collections::BTreeMap::new(),
        software_gpu: false,
    }
}

fn permit() -> Permit {
    Permit { overwrite: true, make_missing: true, ..Permit::default() }
}

fn looks() -> &'static Looks<'static> {
    static STOP: AtomicBool = AtomicBool::new(false);
    Box::leak(Box::new(Looks::new(&|_, _| {}, &STOP, &std::time::SystemTime::now)))
}

/// Prepares one group of jobs as a run does, and ends as one whose load never started.
fn prepare(jobs: Vec<JobPlan>) {
    let (mut plan, permit, root) = (plan(jobs), permit(), Root::live());
    let mut data = DataSet::guard(&mut plan, &permit, &root, looks()).unwrap();
    data.prepare(&plan.jobs, &AtomicBool::new(false), &|done, of| assert!(done <= of)).unwrap();
    data.finalize(&plan.jobs, &[], true).unwrap();
    data.finish().unwrap();
}

/// A job on a part of a file.
#[derive(Debug, Clone)]
struct Part {
    offset: u64,
    size: u64,
    threads: u64,
    rw: &'static str,
    verify: &'static str,
    engine: &'static str,
}

impl Part {
    fn plan(&self, path: &Path, number: usize) -> JobPlan {
        let Part { offset, size, threads, rw, verify, engine } = self;
        let path = path.display();
        let mut job = job(&format!(
            "filename={path}\nrw={rw}\nbs=1\noffset={offset}\nsize={size}\ndirect=0\n\
             threads={threads}\nverify={verify}\nengine={engine}"
        ));
        job.name = format!("j{number}");
        job
    }

    /// Threads that name a file share it, one size after the other.
    fn end(&self) -> u64 {
        self.offset + self.size * self.threads
    }

    fn uses(&self, at: u64) -> bool {
        (self.offset..self.end()).contains(&at)
    }
}

fn part() -> impl Strategy<Value = Part> {
    let numbers = (0..20_000_u64, 1..9000_u64, 1..3_u64);
    let kind = prop::sample::select(vec!["write", "randwrite", "rw", "randrw"]);
    let verify = prop::sample::select(vec!["off", "pass", "inline", "rewrite"]);
    let engine = prop::sample::select(vec!["psync", "mmap"]);
    let all = (numbers, kind, verify, engine);
    all.prop_map(|((offset, size, threads), rw, verify, engine)| {
        // Inline, only reads are verified.
        let verify = if verify == "inline" && !rw.ends_with("rw") { "off" } else { verify };
        Part { offset, size, threads, rw, verify, engine }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A data set made in another owner's file writes only within the bytes that its jobs use; and
    /// the bytes they need are there.
    #[test]
    fn a_foreign_file_keeps_what_no_job_uses(
        length in 0..40_000_usize,
        parts in prop::collection::vec(part(), 1..4),
    ) {
        let dir = directory();
        let path = dir.path().join("mine");
        let before: Vec<u8> = (1..=251_u8).cycle().take(length).collect();
        std::fs::write(&path, &before).unwrap();
        let both = || parts.iter().enumerate();
        let jobs: Vec<JobPlan> = both().map(|(n, part)| part.plan(&path, n)).collect();
        let target = &jobs[0].targets[0];
        let key = pattern::file_key(jobs[0].salt, target.file_number);
        let other = pattern::file_key(other_salt(jobs[0].salt), target.file_number);
        prop_assume!(read_back::of_groups(&jobs).is_ok());
        prepare(jobs);
        let after = std::fs::read(&path).unwrap();
        prop_assert!(after.len() >= before.len(), "it is not cut");
        for (at, (byte, found)) in (0..).zip(before.iter().zip(&after)) {
            let used = parts.iter().any(|part| part.uses(at));
            prop_assert!(used || byte == found, "byte {at} is no job's and changed");
        }
        for (at, found) in (0..).zip(&after).skip(before.len()) {
            let used = parts.iter().any(|part| part.uses(at));
            prop_assert!(used || *found == 0, "byte {at} is no job's and was written");
        }
        for part in &parts {
            let reads = part.rw.ends_with("rw");
            let end = usize::try_from(part.end()).unwrap();
            prop_assert!(after.len() >= end, "too short");
            let start = usize::try_from(part.offset).unwrap();
            let holds = |key| pattern::check(&after[start..end], key, part.offset);
            if part.verify == "pass" {
                prop_assert_eq!(holds(other), None, "what a lost write would leave");
            } else if reads && part.verify != "off" {
                prop_assert_eq!(holds(key), None);
            } else if !reads && parts.len() == 1 && length >= end {
                prop_assert_eq!(&after, &before, "a job that only writes needs nothing made");
            }
        }
        prop_assert_eq!(listed(&path), None, "it does not become ours");
    }
}

/// The result of a job whose verification found everything right.
fn right(job: &JobPlan) -> JobResult {
    let verify = VerifyOutcome { complete: true, ..VerifyOutcome::default() };
    JobResult { verify: Some(verify), ..result(job, 1) }
}

/// A group that writes, and one that reads what it wrote.
fn write_then_read(write: &str, read: &str, file: Option<&[u8]>) -> Result<Vec<u8>, String> {
    let dir = directory();
    let path = dir.path().join("f");
    if let Some(bytes) = file {
        std::fs::write(&path, bytes).unwrap();
    }
    let line = |rest: &str| job(&format!("filename={}\ndirect=0\nbs=4k\n{rest}", path.display()));
    let mut reader = line(read);
    (reader.name, reader.group) = ("b".to_owned(), 1);
    let mut plan = plan(vec![line(write), reader]);
    // gdsio's face: nothing is made for a read.
    let (permit, root) = (Permit { make_missing: false, ..permit() }, Root::live());
    let stop = AtomicBool::new(false);
    let guarded = DataSet::guard(&mut plan, &permit, &root, looks());
    let mut data = guarded.map_err(|error| error.to_string())?;
    let (first, second) = plan.jobs.split_at(1);
    data.prepare(first, &stop, &|_, _| {}).unwrap();
    // The load and its verification pass.
    let target = &first[0].targets[0];
    let key = pattern::file_key(first[0].salt, target.file_number);
    let from = first[0].offset_bytes;
    let mut bytes = vec![0; usize::try_from(target.length_bytes - from).unwrap()];
    pattern::fill(&mut bytes, key, from);
    let open = std::fs::File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&open, &bytes, from).unwrap();
    data.finalize(first, &[right(&first[0])], true).unwrap();
    data.prepare(second, &stop, &|_, _| {}).unwrap();
    data.finalize(second, &[right(&first[0])], true).unwrap();
    data.finish().unwrap();
    Ok(std::fs::read(path).unwrap())
}

#[test]
fn what_one_group_wrote_and_verified_the_next_may_verify() {
    let mine = vec![7; 64 << 10];
    let after = write_then_read(
        "rw=write\noffset=8k\nsize=16k\nverify=pass",
        "rw=read\noffset=8k\nsize=16k\nverify=pass",
        Some(&mine),
    );
    let after = after.unwrap();
    assert!(after[..8 << 10] == mine[..8 << 10] && after[24 << 10..] == mine[24 << 10..]);
    for read in ["offset=4k\nsize=16k", "offset=8k\nsize=20k", "size=4k"] {
        let error = write_then_read(
            "rw=write\noffset=8k\nsize=16k\nverify=pass",
            &format!("rw=read\nverify=pass\n{read}"),
            Some(&mine),
        );
        assert!(error.unwrap_err().contains("nothing to verify its bytes against"), "{read}");
    }
}

/// A directory for files that stay goes again with a run that ends before it made one.
#[test]
fn a_directory_that_stays_empty_is_removed() {
    let dir = directory();
    let place = dir.path().join("new");
    let run = |stopped: bool| {
        let mut plan = plan(vec![job(&format!("directory={}\nsize=64k\nbs=4k", place.display()))]);
        plan.jobs[0].keep = true;
        let (permit, root) = (permit(), Root::live());
        let mut data = DataSet::guard(&mut plan, &permit, &root, looks()).unwrap();
        let made = data.prepare(&plan.jobs, &AtomicBool::new(stopped), &|_, _| {});
        assert_eq!((made.is_err(), place.exists()), (stopped, true));
        drop(data);
        place.exists()
    };
    assert!(!run(true));
    assert!(run(false));
}

/// The entry of this file in the list of gpuio's own files.
fn listed(path: &Path) -> Option<manifest::Entry> {
    let list = path.with_file_name(manifest::FILE_NAME);
    let text = std::fs::read(&list).ok()?;
    let entries = manifest::parse(&list, &text).unwrap();
    entries.into_iter().find(|entry| path.ends_with(&entry.name))
}

/// The list must not say of a whole file what is true of its beginning.
#[test]
fn a_verified_beginning_does_not_prove_ownership_of_a_longer_file_of_ours() {
    let dir = directory();
    let path = dir.path().join("f");
    let line = |rest: &str| job(&format!("filename={}\ndirect=0\n{rest}", path.display()));
    let run = |line: JobPlan, verified: bool| {
        let (mut plan, permit, root) = (plan(vec![line]), permit(), Root::live());
        let mut data = DataSet::guard(&mut plan, &permit, &root, looks()).unwrap();
        data.prepare(&plan.jobs, &AtomicBool::new(false), &|_, _| {}).unwrap();
        let open = std::fs::File::options().write(true).open(&path).unwrap();
        let length = plan.jobs[0].targets[0].length_bytes;
        open.set_len(open.metadata().unwrap().len().max(length)).unwrap();
        drop(open);
        let results: Vec<JobResult> = plan.jobs.iter().filter(|_| verified).map(right).collect();
        data.finalize(&plan.jobs, &results, true).unwrap();
        data.finish().unwrap();
        let entry = listed(&path).expect("it is ours");
        (entry.pattern, entry.parts)
    };
    let none = (false, Vec::new());
    assert_eq!(run(line("rw=write\nbs=4k\nsize=64k"), false), none);
    let beginning = (false, vec![(0, 16 << 10)]);
    assert_eq!(run(line("rw=write\nbs=4k\nsize=16k\nverify=pass"), true), beginning);
    let shorter = (false, vec![(8 << 10, 16 << 10)]);
    assert_eq!(run(line("rw=write\nbs=4k\nsize=8k"), false), shorter, "the rest is as it was");
    let whole = (true, Vec::new());
    assert_eq!(run(line("rw=write\nbs=4k\nsize=64k\nverify=pass"), true), whole);
    assert_eq!(run(line("rw=write\nbs=4k\nsize=8k\nverify=pass"), true), whole);
}

/// Jobs that write one file together, each a part of it: all of it holds the pattern, whatever was
/// in it before.
#[test]
fn verified_parts_of_several_jobs_are_a_whole_file() {
    for noise in [0, 64 << 10, 1 << 20] {
        let dir = directory();
        let path = dir.path().join("f");
        let line = |rest: &str| job(&format!("filename={}\ndirect=0\n{rest}", path.display()));
        let run = |lines: Vec<JobPlan>, verified: bool| {
            let (mut plan, permit, root) = (plan(lines), permit(), Root::live());
            let mut data = DataSet::guard(&mut plan, &permit, &root, looks()).unwrap();
            data.prepare(&plan.jobs, &AtomicBool::new(false), &|_, _| {}).unwrap();
            let open = std::fs::File::options().write(true).open(&path).unwrap();
            let length = plan.jobs.iter().map(|job| job.targets[0].length_bytes).max().unwrap();
            open.set_len(open.metadata().unwrap().len().max(length)).unwrap();
            drop(open);
            let results: Vec<JobResult> =
                plan.jobs.iter().filter(|_| verified).map(right).collect();
            data.finalize(&plan.jobs, &results, true).unwrap();
            data.finish().unwrap();
        };
        if noise > 0 {
            run(vec![line(&format!("rw=write\nbs=4k\nsize={noise}"))], false);
        }
        let part = |nth: u64| {
            let mut job =
                line(&format!("rw=write\nbs=4k\nsize=16k\noffset={}k\nverify=pass", 16 * nth));
            job.name = format!("job{nth}");
            job
        };
        run((0..8).map(part).collect(), true);
        let entry = listed(&path).expect("it is ours");
        assert!(entry.pattern, "{noise}: {entry:?}");
    }
}

/// A part that is to be verified needs a file of ours that holds the pattern in all the rest.
#[test]
fn a_verified_write_of_a_part_makes_a_file_of_ours_whole() {
    let dir = directory();
    let path = dir.path().join("f");
    let line = |rest: &str| job(&format!("filename={}\ndirect=0\nbs=4k\n{rest}", path.display()));
    prepare(vec![line("rw=write\nsize=64k")]);
    let part = line("rw=write\noffset=8k\nsize=16k\nverify=pass");
    let number = part.targets[0].file_number;
    let (key, other) = (part.salt.into(), other_salt(part.salt));
    let [key, other] = [key, other].map(|salt| pattern::file_key(salt, number));
    prepare(vec![part]);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 24 << 10);
    assert_eq!(pattern::check(&bytes[..8 << 10], key, 0), None);
    assert_eq!(pattern::check(&bytes[8 << 10..], other, 8 << 10), None, "to be written yet");
}

/// Two jobs of a group on one file of ours: it is made for the longer one.
#[test]
fn a_file_that_is_made_anew_is_long_enough_for_every_job() {
    let dir = directory();
    let path = dir.path().join("f");
    let line = |rest: &str| job(&format!("filename={}\ndirect=0\nbs=4k\n{rest}", path.display()));
    prepare(vec![line("rw=rw\nsize=64k")]);
    let mut short = line("rw=read\nsize=16k\nverify=pass");
    short.name = "short".to_owned();
    prepare(vec![short, line("rw=read\nsize=64k")]);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 64 << 10);
}
