//! A process that is stopped in the middle of a run: that time is no figure of storage.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::tool::{command, gpuio, scratch, until, wait, words};

/// How long the process is stopped.
const STOPPED: Duration = Duration::from_secs(3);

/// The state of a process, by its letter: proc_pid_stat(5).
fn state(pid: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn time_in_which_the_process_was_stopped_is_in_no_figure() {
    for load in ["--engine psync", "--engine pool --depth 8 --threads 2"] {
        let dir = scratch();
        let mut run = command(dir.path());
        run.args(words("bench --path host --rw randread --bs 4k --size 4m --directory d"));
        run.args(words(load)).args(words("--runtime 2s --format json -q")).stdin(Stdio::null());
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (child, began) = (run.spawn().unwrap(), Instant::now());
        let (pid, process) = (child.id(), Pid::from_child(&child));
        until("it never came", || {
            let ran = gpuio(dir.path(), &format!("stats {pid} --json"));
            ran.code == 0 && ran.json()["read"]["ios"].as_u64() > Some(0)
        });
        kill_process(process, Signal::STOP).unwrap();
        until("it never came", || state(pid) == Some('T'));
        std::thread::sleep(STOPPED);
        kill_process(process, Signal::CONT).unwrap();
        let ran = wait(child, began).exits(0);
        let took = ran.took;
        let record = ran.json();
        let job = &record["jobs"][0];
        let stopped = u64::try_from(STOPPED.as_nanos()).unwrap();
        let most = job["read"]["latency"]["total"]["max_ns"].as_u64().unwrap();
        assert!(most < stopped, "{load}: an I/O took {most} ns");
        let done = job["last_done_ns"].as_u64().unwrap();
        assert!(done < stopped, "{load}: 2 s were measured, and it says {done} ns");
        let points = job["series"].as_array().unwrap();
        let longest = points.iter().map(|point| point["span_ns"].as_u64().unwrap()).max();
        assert!(longest < Some(stopped), "{load}: {longest:?}");
        let warnings = record["warnings"].as_array().unwrap();
        let is = |warning: &&Value| warning["warning"] == "stopped";
        let found: Vec<&Value> = warnings.iter().filter(is).collect();
        let [kind] = found[..] else { panic!("{load}: {warnings:#?}") };
        // Its wait for a processor afterwards is not counted as a stop.
        let counted = Duration::from_nanos(kind["stopped_ns"].as_u64().unwrap());
        assert!(counted > STOPPED / 2 && counted < took, "{load}: {counted:?} of {took:?}");
        assert_eq!((&kind["times"], &kind["suspended_ns"]), (&1.into(), &0.into()));
        // The I/Os in flight meanwhile are in no figure, so the series has as many as the result.
        std::fs::write(dir.path().join("r.json"), record.to_string()).unwrap();
        gpuio(dir.path(), "show r.json --check").exits(0);
    }
}
