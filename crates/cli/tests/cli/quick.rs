//! `gpuio bench` with nothing said: the run of somebody who has just installed it.

use serde_json::Value;

use crate::record::{check_clean, jobs};
use crate::shown;
use crate::tool::{GPUIO, finish, gpuio, is_root, other, plain, scratch, skip};

/// In an empty directory of a small file system: everything runs, and only the record stays.
#[test]
fn only_the_record_stays() {
    let dir = scratch();
    let flags: &[&str] = if is_root() { &["-m"] } else { &["-r", "-m"] };
    // The data set follows the room there is: on 256 MiB it is small enough for a test.
    let script = "mount -t tmpfs -o size=256m gpuio-test \"$0\" || exit 77; cd \"$0\"
        code=0; \"$G\" bench --runtime 100ms --gpu software || code=$?
        echo ==; ls -A; echo ==; cat gpuio-bench-*.json; exit $code";
    let mut shell = other(dir.path(), "unshare");
    shell.args(flags).args(["bash", "-uc", script]).arg(dir.path());
    shell.env("G", GPUIO);
    if plain("unshare").args(flags).arg("true").output().is_err() {
        return skip("no unshare(1) here");
    }
    let ran = finish(&mut shell);
    if ran.code == 77 || ran.err.contains("unshare:") {
        return skip("no mount namespace here; run as root, or where users may make one");
    }
    let ran = ran.exits(0);
    assert!(ran.err.contains("note: this takes at most about ") && ran.err.contains(" loads of "));
    let parts: Vec<&str> = ran.out.split("==\n").collect();
    assert_eq!(parts.len(), 3, "{}", ran.out);
    let left: Vec<&str> = parts[1].lines().collect();
    assert!(matches!(left[..], [name] if name.starts_with("gpuio-bench-")), "{left:?}");
    assert!(parts[0].contains(&format!("Record: {}", left[0])), "{}", parts[0]);
    let record: Value = serde_json::from_str(parts[2]).unwrap();
    check_clean(&record);
    let mut paths: Vec<&str> = jobs(&record)
        .iter()
        .map(|(plan, _)| plan["path"]["choice"]["actual"].as_str().unwrap())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    let cufile = ["gds", "gds-batch", "gds-batch-stream", "gds-stream"];
    let (ours, core) = (["cached", "gather"], ["library", "library-batch", "library-stream"]);
    let others =
        [["host", "initiated"].as_slice(), &core, &["managed", "mapped", "resident", "staged"]]
            .concat();
    assert_eq!(paths, [ours.as_slice(), &cufile, &others].concat());
    // All paths read, and two of them write.
    assert_eq!(jobs(&record).len(), 2 * paths.len() + 4);
    // Findings and warnings are as many as the machine gives cause for.
    let is_finding = |line: &&str| line.starts_with("warning:") || line.starts_with("error:");
    let is_its_rest = |line: &&str| line.starts_with("         ");
    let lines = parts[0].lines().filter(|line| !is_finding(line) && !is_its_rest(line));
    let screen = lines.count();
    assert!(screen <= 42, "{screen} lines: {}", parts[0]);
    for part in [
        "rate of your storage was not measured",
        "fastest way to the software GPU",
        "Verified: a",
        "Next:",
    ] {
        assert!(parts[0].contains(part), "{part}: {}", parts[0]);
    }
    // The command to go on with takes the path that was named as the fastest.
    let words = parts[0].split_whitespace().collect::<Vec<_>>().join(" ");
    let fastest = words.split_once("fastest way to the software GPU is `").unwrap().1;
    let path = fastest.split_once('`').unwrap().0;
    assert!(words.contains(&format!("gpuio bench --path {path} --gpu")), "{path}: {words}");
    shown::holds("gpuio bench --gpu software", parts[0]);
    let load = "bench --rw read --bs 64k --size 1m --loops 1 --details";
    let shown = gpuio(dir.path(), load).exits(0).out;
    assert!(shown.contains("evidence") && !shown.contains("Your storage"), "{shown}");
    for (plan, job) in jobs(&record) {
        assert_eq!(plan["verify"], "pass");
        assert_eq!(job["verify"]["bad_blocks"], 0);
    }
}
