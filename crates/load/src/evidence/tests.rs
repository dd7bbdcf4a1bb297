//! Each counter is read once before and once after a group, and all that is concluded from it is
//! concluded from these two values.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_host::Root;
use gpuio_host::block::{self, BlockSample};
use gpuio_io::clock::Clock;
use gpuio_record::facts::Machine;
use gpuio_record::{Assessment, CacheReading, JobPlan, JobResult, WarningKind};
use rustix::fs::inotify;

use super::*;
use crate::evidence::reconcile::GroupContext;
use gpuio_base::stat::LiveTotals;
use gpuio_base::units::float;
use gpuio_testkit::jobs::{job, result};
use gpuio_testkit::tree;

const STAT: &str = "sys/devices/pci0000:00/vda/stat";
const DEV: &str = "proc/net/dev";
const MOUNTSTATS: &str = "proc/self/mountstats";
const IO: &str = "proc/self/io";
const NVIDIA_FS: &str = "proc/driver/nvidia-fs/stats";
const GIB: u64 = 1 << 30;

/// A machine of files, with a file of 1 MiB for a job.
struct Tree(tree::Tree);

impl Tree {
    /// The file lies on a disk.
    fn with_disk() -> Tree {
        let tree = Tree::new();
        let dev = fs::metadata(tree.file()).unwrap().dev();
        let number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
        let disk = "sys/devices/pci0000:00/vda";
        tree.0.device(disk, &number, 2048);
        tree.read_from_disk(0);
        tree.put("proc/self/mountinfo", &format!("1 0 {number} / / rw - xfs /dev/vda rw\n"));
        tree
    }

    /// The file lies on an NFS server.
    fn with_nfs() -> Tree {
        let tree = Tree::new();
        let mount = "1 0 0:50 / / rw - nfs4 server:/a rw,proto=tcp,addr=10.0.7.9\n";
        tree.put("proc/self/mountinfo", mount);
        tree.put(
            "proc/net/route",
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
             ib0\t0007000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n",
        );
        tree.put(DEV, "head\nhead\n ib0: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n");
        let stats = "device server:/a mounted on / with fstype nfs4 statvers=1.1\n\
                     \tbytes:\t0 0 0 0 64 0 0 0\n\tper-op statistics\n\
                     \tREAD: 1 1 0 0 0 0 2 2 0\n";
        tree.put(MOUNTSTATS, stats);
        tree
    }

    fn new() -> Tree {
        let tree = Tree(tree::Tree::new());
        tree.put("data", "");
        fs::File::options().write(true).open(tree.file()).unwrap().set_len(1 << 20).unwrap();
        tree.put(IO, "rchar: 0\nread_bytes: 4096\nwrite_bytes: 0\n");
        let stats =
            "GDS Version: 1.15.0.1\nNVFS statistics(ver: 4.0)\nNVFS Driver(version: 2.26)\n";
        tree.put(NVIDIA_FS, stats);
        tree
    }

    fn path(&self, at: &str) -> PathBuf {
        self.0.path(at)
    }

    fn file(&self) -> PathBuf {
        self.path("data")
    }

    fn root(&self) -> Root {
        self.0.root()
    }

    /// Replaces the file, so that no reader finds half of it.
    fn put(&self, at: &str, text: &str) {
        let (path, new) = (self.path(at), self.path("new"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn read_from_disk(&self, bytes: u64) {
        self.put(STAT, &format!("{} 0 {} 0 0 0 0 0 0 0 0\n", bytes >> 20, bytes / 512));
    }

    fn job(&self) -> JobPlan {
        let file = self.file();
        job(&format!("filename={}\nrw=read\nbs=1m\nsize=1m\nengine=psync", file.display()))
    }

    /// Takes both snapshots, with the sampler's thread in between, which takes no sample itself.
    fn group(&self, jobs: &[JobPlan], between: impl FnOnce()) -> Readings {
        let sampler = DeviceSampler::new(Machine::default(), 3_600_000_000_000);
        let clock = Clock::start();
        let open =
            |path: &str| fs::File::open(path).map(OwnedFd::from).map_err(|error| error.to_string());
        let setup = Setup {
            root: self.root(),
            jobs,
            open: &open,
            cufile: None,
            clock,
            sampler: Some(&sampler),
        };
        let mut collector = Collector::begin(setup);
        collector.started(clock.now());
        between();
        collector.end()
    }

    /// The same for jobs that begin later: what happens before their first I/O, in the ramp of the
    /// first that counts, in which each moves so much, and in the window.
    fn later_group(&self, jobs: &[JobPlan], happens: [&dyn Fn(); 3], moved: u64) -> Readings {
        let open =
            |path: &str| fs::File::open(path).map(OwnedFd::from).map_err(|error| error.to_string());
        let sampler = DeviceSampler::new(Machine::default(), 3_600_000_000_000);
        let clock = Clock::start();
        let (root, sampler) = (self.root(), Some(&sampler));
        let mut collector =
            Collector::begin(Setup { root, jobs, open: &open, cufile: None, clock, sampler });
        collector.started(clock.now());
        let [delay, ramp, window] = happens;
        for happens in [delay, ramp] {
            happens();
            let due = collector.due();
            while due.is_some() && collector.due() == due {
                std::thread::sleep(std::time::Duration::from_millis(1));
                collector.look(|| {
                    vec![LiveTotals { read_bytes: moved, ..LiveTotals::default() }; jobs.len()]
                });
            }
        }
        window();
        collector.end()
    }

    /// This process has had so many ticks of the machine's two processors, other programs so many
    /// more; the rest of these was idle.
    fn ticks(&self, [ours, others, all]: [u64; 3]) {
        let cpu =
            |cpu: u32, user: u64| format!("cpu{cpu} {user} 0 0 {} 0 0 0 0 0 0\n", all / 2 - user);
        self.put("proc/stat", &(cpu(0, ours) + &cpu(1, others)));
        let fields = "S 1 1 1 0 -1 0 0 0 0 0";
        self.put("proc/self/stat", &format!("9 (gpuio) {fields} {ours} 0 0 0 20 0 1 0 5 0 0\n"));
        self.put("proc/self/status", "Cpus_allowed_list:\t0-1\n");
    }
}

/// Counts how often files are opened.
struct Opens {
    inotify: OwnedFd,
    files: Vec<(i32, PathBuf)>,
}

impl Opens {
    fn of(tree: &Tree, files: &[&str]) -> Opens {
        let inotify = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        let watch = |file: &&str| {
            let path = tree.path(file);
            let flags = inotify::WatchFlags::OPEN;
            (inotify::add_watch(&inotify, &path, flags).unwrap(), path)
        };
        let files = files.iter().map(watch).collect();
        Opens { inotify, files }
    }

    /// How often each was opened since the last call.
    fn count(&self) -> Vec<(&Path, usize)> {
        let mut counts = vec![0; self.files.len()];
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.inotify, &mut buffer);
        while let Ok(event) = events.next() {
            let at = self.files.iter().position(|(watch, _)| *watch == event.wd()).unwrap();
            counts[at] += 1;
        }
        self.files.iter().map(|(_, path)| path.as_path()).zip(counts).collect()
    }
}

fn each_is_opened_once_per_moment(tree: &Tree, jobs: &[JobPlan], files: &[&str]) {
    // Events that are alike and follow one another are one, so each file has its own queue.
    let watched: Vec<Opens> = files.iter().map(|file| Opens::of(tree, &[file])).collect();
    let once = |when: &str| {
        for opens in &watched {
            let [(path, count)] = opens.count()[..] else { panic!("one file") };
            assert_eq!(count, 1, "{} {when}", path.display());
        }
    };
    tree.group(jobs, || once("before"));
    once("after");
}

#[test]
fn a_disk_s_counters_are_opened_once_before_and_once_after() {
    let tree = Tree::with_disk();
    each_is_opened_once_per_moment(&tree, &[tree.job()], &[STAT, IO, NVIDIA_FS]);
    // Two jobs on one disk share its counter; a library has the module sampled too.
    let mut library = tree.job();
    library.path.choice.actual = "gds".to_owned();
    each_is_opened_once_per_moment(&tree, &[tree.job(), library], &[STAT, IO, NVIDIA_FS]);
}

#[test]
fn a_server_s_counters_are_opened_once_before_and_once_after() {
    let tree = Tree::with_nfs();
    each_is_opened_once_per_moment(&tree, &[tree.job()], &[MOUNTSTATS, DEV, IO, NVIDIA_FS]);
}

/// The conclusions of the evidence entry and the warnings about a disk: whether the entry supports
/// that storage moved the job's bytes and no others, and whether a warning reports that others used
/// it.
fn conclusions(readings: &Readings, job: &JobPlan, cache: CacheReading, bytes: u64) -> [bool; 2] {
    let mut result: JobResult = result(job, 0);
    result.file_leg.read_bytes = bytes;
    result.file_leg.read_ios = bytes >> 20;
    result.cache = CacheReading { process_read_bytes: Some(bytes), ..cache };
    let jobs = std::slice::from_ref(job);
    readings.prove(jobs, std::slice::from_mut(&mut result));
    let proof = result.proof.as_ref().unwrap();
    let entry = proof.evidence.iter().find(|entry| entry.name == "block").unwrap();
    let results = std::slice::from_ref(&result);
    let found = reconcile::find(&GroupContext { jobs, results, counted: &readings.counted });
    let others = found.iter().any(|(_, kind)| matches!(kind, WarningKind::OtherTraffic { .. }));
    [entry.assessment == Assessment::Supports, others]
}

#[test]
fn a_counter_that_changes_between_two_reads_contradicts_nothing() {
    let tree = Tree::with_disk();
    // The process's own I/O is not known, so the disk is judged by its own counter.
    fs::remove_file(tree.path(IO)).unwrap();
    let jobs = [tree.job()];
    let sample = || block::sample_named(&tree.root(), "vda").unwrap().unwrap();
    let done = AtomicBool::new(false);
    let readings = std::thread::scope(|scope| {
        // The disk reads 8 GiB more all the time.
        scope.spawn(|| {
            let mut bytes = 0;
            while !done.load(Ordering::Relaxed) {
                bytes += 8 * GIB;
                tree.read_from_disk(bytes);
            }
        });
        let changed = |first: BlockSample| {
            while sample() == first {
                std::thread::yield_now();
            }
        };
        let readings = tree.group(&jobs, || changed(sample()));
        done.store(true, Ordering::Relaxed);
        readings
    });
    let before = readings.before.devices.block("vda").unwrap();
    let after = readings.after.devices.block("vda").unwrap();
    let moved = before.delta(after).unwrap().read_bytes;
    let cache = || readings.caches().remove(0);
    assert_eq!(cache().storage[0].read_bytes, moved);
    let counted = readings.counted.block("vda").unwrap().read_bytes;
    assert!((counted - float(moved)).abs() < 1.0, "{counted} {moved}");
    let series = readings.series.as_ref().unwrap();
    let disk = series.group.devices.iter().find(|one| one.device == "vda").unwrap();
    let rate = disk.figures.iter().find(|one| one.key == "read_bytes_per_second").unwrap();
    let whole = rate.whole.unwrap() * readings.counted.seconds;
    assert!((whole / float(moved) - 1.0).abs() < 1e-9, "{whole} {moved}");
    assert_eq!(conclusions(&readings, &jobs[0], cache(), moved), [true, false]);

    // Were each consumer to read for itself, storage would have moved the job's bytes and no
    // others by the one, and many others' by the other.
    tree.read_from_disk((after.read_sectors * 512) + moved);
    let mut apart = cache();
    apart.storage[0].read_bytes = before.delta(&sample()).unwrap().read_bytes;
    assert_eq!(conclusions(&readings, &jobs[0], apart, moved), [true, true]);
}

/// Others' work in a start delay and in a ramp is in nothing that is "during the run"; in the ramp
/// it is in what covers all I/Os.
#[test]
fn work_of_others_before_the_window_is_not_in_it() {
    let tree = Tree::with_disk();
    let job = |delay_ms: u64, ramp_ms: u64| JobPlan {
        start_delay_ns: delay_ms * 1_000_000,
        ramp_ns: ramp_ms * 1_000_000,
        ..tree.job()
    };
    let own =
        |bytes: u64| tree.put(IO, &format!("rchar: 0\nread_bytes: {bytes}\nwrite_bytes: 0\n"));
    let of = |jobs: &[JobPlan]| {
        // 8 GiB of others in the delay, 4 GiB of others and 1 of ours in the ramp, 2 of ours in
        // the window; and others had a processor until then.
        let delay = || tree.read_from_disk(8 * GIB);
        let ramp = || {
            tree.read_from_disk(13 * GIB);
            own(GIB);
            tree.ticks([100, 1000, 2000]);
        };
        let window = || {
            tree.read_from_disk(15 * GIB);
            own(3 * GIB);
            tree.ticks([300, 1000, 2400]);
        };
        // A reading that comes too late for the first I/O is none before it: the next may.
        let readings = loop {
            tree.read_from_disk(0);
            own(0);
            tree.ticks([0; 3]);
            let moved = GIB / jobs.len() as u64;
            let readings = tree.later_group(jobs, [&delay, &ramp, &window], moved);
            if readings.before.sample.at_ns > 50_000_000 {
                break readings;
            }
        };
        let disk = readings.counted.block("vda").unwrap().read_bytes;
        let cpu = readings.counted.cpu.unwrap();
        let others =
            gpuio_base::units::float(cpu.programs_ns) / gpuio_base::units::float(cpu.all_ns);
        let mut results: Vec<JobResult> = jobs.iter().map(|job| result(job, 0)).collect();
        for (result, cache) in results.iter_mut().zip(readings.caches()) {
            result.file_leg.read_bytes = 3 * GIB / jobs.len() as u64;
            result.cache = cache;
        }
        let found = readings.disagreements(jobs, &results);
        let traffic = found.iter().find_map(|(_, kind)| match kind {
            WarningKind::OtherTraffic { ours_bytes, device_bytes, .. } => {
                Some((ours_bytes / GIB, device_bytes / GIB))
            }
            _ => None,
        });
        let all = results[0].cache.storage[0].read_bytes;
        let began_ms = readings.series.as_ref().unwrap().group.began_ns / 1_000_000;
        ((disk / gpuio_base::units::float(GIB)).floor(), all / GIB, others, traffic, began_ms)
    };
    // The figures are those of the window; what is held against all bytes has the ramp.
    let (window, all, others, traffic, began) = of(&[job(200, 200)]);
    assert_eq!((window, all, others, traffic), (2.0, 7, 0.0, None));
    assert!(began >= 400, "{began}");
    // Without a ramp both are one reading, which the second job's later start does not change.
    let (window, all, _, traffic, began) = of(&[job(400, 0), job(200, 0)]);
    assert_eq!((window, all, traffic), (7.0, 7, Some((3, 7))), "others in the first job's time");
    assert!(began >= 100, "{began}");
    // One that was interrupted in its delay has no window.
    let jobs = [job(3_600_000, 0)];
    tree.read_from_disk(0);
    own(0);
    tree.ticks([0; 3]);
    let readings =
        tree.group(&jobs, || (tree.read_from_disk(8 * GIB), tree.ticks([0, 1000, 2000])).1);
    let mut none = result(&jobs[0], 0);
    none.cache = readings.caches().remove(0);
    assert_eq!(readings.disagreements(&jobs, &[none]), []);
}
