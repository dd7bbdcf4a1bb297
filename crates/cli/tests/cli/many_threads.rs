//! Thousands of threads, and limits that forbid them.

use crate::record::{check, check_clean, jobs, n};
use crate::tool::{
    GPUIO, Ran, alone, bench, finish, is_root, other, plain, scratch, scratch_in_memory, skip,
    tree, words,
};

const MANY: &str = "--bs 4k --size 4k --runtime 300ms --depth 1 --threads 10000";

/// Threads that this user may have in all, by every limit that the kernel publishes (setrlimit(2),
/// proc(5), cgroups(7)); each has two mappings.
fn most_threads() -> u64 {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nproc);
    let user = if is_root() { None } else { limits.current };
    let cgroups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_cgroup = cgroups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let root = if controllers.is_empty() { "" } else { "/pids" };
        let pids = controllers.is_empty() || controllers == "pids";
        pids.then(|| number(&format!("/sys/fs/cgroup{root}{path}/pids.max")))?
    });
    let of_kernel = ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"];
    let maps = number("/proc/sys/vm/max_map_count").map(|maps| maps / 2);
    let all = of_kernel.into_iter().filter_map(number).chain(of_cgroup).chain(user).chain(maps);
    all.min().unwrap_or(u64::MAX)
}

/// It runs, whole, where the limits allow so many threads twice over, and says in words why not
/// where they are less; and nothing stays. Between the two it depends on what else runs.
#[track_caller]
fn whole_or_reported(ran: &Ran) {
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    let most = most_threads();
    assert!(ran.code == 0 || most < 20_000, "{most} threads are allowed: {}", ran.err);
    if ran.code == 0 {
        assert!(most >= 10_000, "{most} threads are allowed");
        let record = ran.json();
        check_clean(&record);
        assert_eq!(n(&jobs(&record)[0].0["threads"]), 10_000);
    } else {
        assert_eq!(ran.code, 1, "{}", ran.err);
        let reported = ["ulimit", "could not be started", "memory"];
        assert!(reported.iter().any(|word| ran.err.contains(word)), "{}", ran.err);
    }
}

#[test]
fn ten_thousand_on_one_small_file() {
    let _alone = alone();
    let dir = scratch_in_memory();
    std::fs::write(dir.path().join("small"), vec![0; 1 << 20]).unwrap();
    let line = format!(
        "{MANY} --rw randread --engine psync --filename small --buffered \
                        --set shared_files=0 --shared-fd --format json"
    );
    whole_or_reported(&bench(dir.path(), &line));
    assert_eq!(tree(dir.path()), ["small"]);
}

/// Hundreds of files of their own, removed afterwards.
#[test]
fn hundreds_of_files() {
    let dir = scratch_in_memory();
    let line = "--bs 4k --size 4k --runtime 200ms --threads 300 --rw read --engine psync \
                --buffered --verify --format json";
    let record = bench(dir.path(), line).exits(0).json();
    check_clean(&record);
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}

/// The program under a limit of the shell's.
fn limited(dir: &std::path::Path, limit: &str, line: &str) -> Ran {
    let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    let mut shell = other(dir, "bash");
    shell.current_dir(dir).args(["-c", &script, GPUIO, "bench"]).args(words(line));
    finish(&mut shell)
}

#[test]
fn too_few_open_files() {
    let dir = scratch_in_memory();
    let line = "--bs 4k --size 4k --runtime 10 --threads 100 --rw read --engine psync --buffered";
    let ran = limited(dir.path(), "-n 64", line).exits(1);
    assert!(ran.err.contains("ulimit -n"), "{ran:?}");
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}

/// A user who may have few threads. Root is bound by no such limit, so it becomes nobody first.
#[test]
fn too_few_threads() {
    let dir = scratch_in_memory();
    std::fs::write(dir.path().join("small"), vec![0; 1 << 20]).unwrap();
    let nobody: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env"];
    let become_user = if is_root() { nobody } else { &["env"] };
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let mut probe = plain(become_user[0]);
    let probe = probe.args(&become_user[1..]).args([GPUIO, "--version"]).output();
    if !probe.is_ok_and(|out| out.status.success()) {
        return skip("another user can't run the program where it was built");
    }
    let line = "--bs 4k --size 4k --runtime 10 --threads 400 --rw read --engine psync --buffered \
                --filename small --set shared_files=0";
    let mut shell = other(dir.path(), become_user[0]);
    shell.current_dir(dir.path()).args(&become_user[1..]);
    shell.args(["bash", "-c", "ulimit -u 100 && exec \"$0\" \"$@\"", GPUIO, "bench"]);
    let ran = finish(shell.args(words(line))).exits(1);
    assert!(ran.err.contains("could not be started"), "{ran:?}");
    assert!(ran.err.contains("ulimit -u"), "{ran:?}");
    assert_eq!(tree(dir.path()), ["small"]);
}

#[test]
fn files_larger_than_allowed() {
    let dir = scratch();
    let ran = limited(dir.path(), "-f 512", "--rw read --size 4m --runtime 1").exits(1);
    assert!(ran.err.contains("ulimit -f"), "{ran:?}");
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}

/// More threads than CPUs are measured, with a warning.
#[test]
fn more_threads_than_cpus() {
    let dir = scratch_in_memory();
    let line = "--bs 4k --size 64k --runtime 100ms --threads 300 --rw randrw --engine psync \
                --buffered --format json";
    let record = bench(dir.path(), line).exits(0).json();
    check(&record);
    let warned = crate::record::warnings(&record).contains(&"more_threads_than_cpus");
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    assert_eq!(warned, cpus < 300);
}

/// `gpuio LINE` as a user of its own who may have so many threads in all; `None` where that can't
/// be done here. Root is bound by no such limit.
pub(crate) fn with_threads(
    dir: &std::path::Path,
    user: u32,
    most: u32,
) -> Option<std::process::Command> {
    if !is_root() {
        skip("a limit on threads of a user of its own needs root");
        return None;
    }
    let id = user.to_string();
    let user = || {
        let mut command = plain("setpriv");
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
        command
    };
    if !user().args([GPUIO, "--version"]).output().is_ok_and(|out| out.status.success()) {
        skip("another user can't run the program where it was built");
        return None;
    }
    let mut shell = user();
    let script = format!("ulimit -u {most} && exec \"$0\" \"$@\"");
    shell.current_dir(dir).args(["bash", "-c", &script, GPUIO]);
    for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME", "TMPDIR"] {
        shell.env(name, dir);
    }
    Some(shell)
}

/// However few threads there are, and wherever the first is refused: an error in words, or a whole
/// run, and nothing stays.
#[test]
fn no_threads_at_all() {
    for (most, verb) in (1..7).flat_map(|most| {
        let load = "--size 8m --bs 64k --runtime 50ms";
        [
            format!("bench --rw read {load} --directory d --threads 40"),
            format!("bench --rw write {load} --path staged --gpu software"),
            format!("bench --rw randrw {load} --engine pool --depth 8 --serve 0"),
            "gdsio -D g -w 2 -s 64K -i 4K -x 1 -I 1 -T 1".to_owned(),
            "top --count 1 --interval 100ms".to_owned(),
            "check".to_owned(),
        ]
        .map(|line| (most, line))
    }) {
        let dir = scratch_in_memory();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(dir.path(), open).unwrap();
        let Some(mut shell) = with_threads(dir.path(), 64_903, most) else { return };
        let ran = finish(shell.args(words(&verb)));
        assert!(!ran.err.contains("panicked"), "{most}: {verb}: {}", ran.err);
        assert!((0..4).contains(&ran.code), "{most}: {verb}: {ran:?}");
        assert!(ran.code == 0 || !ran.err.is_empty() || !ran.out.is_empty(), "{most}: {verb}");
        let left = tree(dir.path());
        let data = left.iter().find(|name| ["gpuio", "d"].iter().any(|one| name.starts_with(one)));
        assert_eq!(data, None, "{most}: {verb}: {left:?}");
    }
}

/// Address space for some of a trace's threads: an error before the first, and no scratch stays.
#[test]
fn too_little_address_space() {
    let dir = scratch_in_memory();
    let line = "--bs 4k --size 64k --runtime 100ms --rw read --engine pool --depth 64";
    let ran = limited(dir.path(), "-v 3000000", &format!("{line} --threads 400")).exits(1);
    assert!(ran.err.contains("address space") && ran.err.contains("ulimit -v"), "{ran:?}");
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}
