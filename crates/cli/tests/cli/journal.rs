//! Results outlive the process: a journal while a run goes on, and `show` for what it left.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::record::{check, jobs};
use crate::tool::{Ran, bench, command, file, finish, gpuio, state, tree, until, words};

/// Every path on the software GPU, cuFile's last. By bytes, so that each makes as many calls on a
/// busy machine.
const ALL: &str = "--path all --gpu software --rw randread --bs 32k --size 1m --io-size 1m \
                   --directory d --keep --no-ceilings";
/// A path that leaves something, and one of cuFile's.
const TWO: &str = "--path host,gds --gpu software --rw randread --bs 32k --size 1m --io-size 1m \
                   --directory d --keep";
const CRASH: (&str, &str) = ("GPUIO_SOFT_CUFILE_FAIL", "cuFileRead:crash:3");
/// By SIGABRT.
const ABORTED: i32 = -6;

fn run(dir: &Path, line: &str, environment: &[(&str, &str)]) -> Ran {
    let temporary = dir.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut bench = command(dir);
    // A process that crashes leaves its configuration of cuFile behind.
    bench.envs(environment.iter().copied()).env("TMPDIR", &temporary);
    finish(bench.arg("bench").args(words(line)))
}

/// With the directory of the data, which a run would say that it makes.
fn scratch() -> crate::tool::Scratch {
    let dir = crate::tool::scratch();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    dir
}

fn journals(directory: &Path) -> Vec<PathBuf> {
    let all = if directory.exists() { tree(directory) } else { Vec::new() };
    let journals = all.iter().filter(|name| name.ends_with(".gpuio-journal.json"));
    journals.map(|name| directory.join(name)).collect()
}

/// Lines of standard error but the note on paths that `all` leaves out.
fn beside_left_out(err: &str) -> Vec<&str> {
    err.lines().filter(|line| !line.starts_with("note: not run")).collect()
}

#[test]
fn what_ran_before_a_crash_is_kept_and_shown() {
    let dir = scratch();
    let ran = run(dir.path(), ALL, &[CRASH]).exits(ABORTED);
    assert_eq!(ran.out, "", "no result was given out");
    let kept = journals(&state(dir.path()));
    let [journal] = &kept[..] else { panic!("{kept:?}") };
    let journal = journal.to_str().unwrap();
    let ran = ran.prints(&["until this run ends", journal]);
    assert_eq!(beside_left_out(&ran.err).len(), 1, "{}", ran.err);

    let show = |flags: &str| gpuio(dir.path(), &format!("show {journal} {flags}")).exits(0).out;
    let record: Value = serde_json::from_str(&show("--format json")).unwrap();
    check(&record);
    assert_eq!(record["ended"], "unfinished");
    let done: Vec<&str> =
        jobs(&record).iter().map(|(_, job)| job["name"].as_str().unwrap()).collect();
    let engines = words(
        "job-host job-staged job-cached job-managed job-gather job-mapped job-resident \
         job-initiated",
    );
    let core = ["job-library", "job-library-stream", "job-library-batch"];
    assert_eq!(done, [engines.as_slice(), &core].concat());
    for (_, job) in jobs(&record) {
        assert_eq!(job["ended"], "complete");
        assert!(job["read"]["ios"].as_u64().unwrap() > 0, "{job}");
        assert!(!job["proof"].is_null(), "{job}");
    }
    assert_eq!(record["cufile"]["stand_in"], true);
    let text = show("").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["UNFINISHED: ", "during job-gds (path gds)", "NOT RUN: job-gds", "job-gather"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let csv = show("--format csv");
    assert_eq!(csv.lines().filter(|line| line.contains(",unfinished,")).count(), 11, "{csv}");
    assert!(show("--format gdsio").contains("\n# unfinished: "));
    assert!(show("--format plan").contains("[job-gds]"));
}

/// It has one group, and no path that may crash.
#[test]
fn a_killed_run_leaves_what_it_had_done_until_then() {
    let dir = scratch();
    let line = "--rw randread --bs 4k --size 1m --rate-iops 200 --runtime 600 --directory d -q";
    let mut child = command(dir.path()).arg("bench").args(words(line)).spawn().unwrap();
    until("no journal", || !journals(&state(dir.path())).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let journal = journals(&state(dir.path())).remove(0);
    let show = |flags: &str| gpuio(dir.path(), &format!("show {} {flags}", journal.display()));
    let record: Value = serde_json::from_str(&show("--format json").exits(0).out).unwrap();
    assert_eq!(record["ended"], "unfinished");
    assert_eq!(record["jobs"][0]["ended"], "interrupted");
    assert!(record["jobs"][0]["read"]["ios"].as_u64().unwrap() > 0, "{record}");
    let text = show("").exits(0).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("during the jobs that are marked partial"), "{text}");
    let short = "--rw read --bs 32k --size 1m --runtime 100ms --directory d";
    bench(dir.path(), short).exits(0).prints(&["crashed", "gpuio show"]);
}

#[test]
fn the_next_run_reports_one_that_died() {
    let dir = scratch();
    run(dir.path(), TWO, &[CRASH]).exits(ABORTED);
    let journal = journals(&state(dir.path())).remove(0);
    let reported = format!("gpuio show {}", journal.display());
    let short = "--rw read --bs 32k --size 1m --runtime 100ms --directory d";
    // A quiet run leaves it to the next, which says it once.
    assert_eq!(bench(dir.path(), &format!("{short} -q")).exits(0).err, "");
    let remove = format!("rm {}", journal.display());
    let next = bench(dir.path(), short).exits(0).prints(&["crashed", &reported, &remove]);
    assert_eq!(next.err.matches("gpuio show").count(), 1, "{}", next.err);
    for verb in ["", "-o r.json"] {
        assert_eq!(bench(dir.path(), &format!("{short} {verb}")).exits(0).err, "");
    }
    // Later ones are counted, without it; a run that ends well adds none.
    run(dir.path(), &format!("{TWO} -q"), &[CRASH]).exits(ABORTED);
    run(dir.path(), &format!("{TWO} -q"), &[CRASH]).exits(ABORTED);
    run(dir.path(), TWO, &[]).exits(0).prints(&["(and 1 more there)", "said once"]);
    assert_eq!(journals(&state(dir.path())).len(), 3);
    assert!(journal.exists(), "never removed but by its reader");
    gpuio(dir.path(), &format!("show {}", journal.display())).exits(0);
}

#[test]
fn a_run_that_ends_leaves_none_and_says_nothing_without_need() {
    let dir = scratch();
    let two = "--path host,staged --gpu software --rw read --bs 32k --size 1m --runtime 100ms \
               --directory d";
    assert_eq!(bench(dir.path(), two).exits(0).err, "");
    // With cuFile last there is something to lose, and once it has run there is not.
    let gds = run(dir.path(), TWO, &[]).exits(0).prints(&["until this run ends"]);
    assert_eq!(beside_left_out(&gds.err).len(), 1, "{}", gds.err);
    let first = two.replace("host,staged", "gds,host");
    assert_eq!(run(dir.path(), &first, &[]).exits(0).err, "");
    assert_eq!(journals(&state(dir.path())), Vec::<PathBuf>::new());
    assert!(state(dir.path()).join("gpuio").is_dir(), "there was one meanwhile");
}

#[test]
fn beside_the_output_where_there_is_one() {
    let dir = scratch();
    let results = dir.path().join("results");
    std::fs::create_dir(&results).unwrap();
    run(dir.path(), &format!("{TWO} -o results/r.json"), &[CRASH]).exits(ABORTED);
    assert!(!state(dir.path()).exists());
    let journal = journals(&results).remove(0);
    let name = journal.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("r.json."), "{name}");
    let short = "--rw read --bs 32k --size 1m --runtime 100ms --directory d -o results/s.json";
    bench(dir.path(), short).exits(0).prints(&["crashed", name]);
    assert!(journal.exists());
}

#[test]
fn without_a_place_for_it_the_run_goes_on_with_a_warning() {
    let dir = scratch();
    let nowhere = [("XDG_STATE_HOME", "/dev/null")];
    let ran = run(dir.path(), TWO, &nowhere).exits(0);
    let ran = ran.prints(&["warning: ", "not saved", "/dev/null/gpuio", "-o FILE"]);
    assert_eq!(beside_left_out(&ran.err).len(), 1, "{}", ran.err);
    // A variable that is no absolute path is none, and so is a home.
    let none = [("XDG_STATE_HOME", ""), ("HOME", "")];
    run(dir.path(), TWO, &none).exits(0).prints(&["not saved", "HOME"]);
    run(dir.path(), &format!("{TWO} -q -o r.json"), &none).exits(0);
    let home = dir.path().join("home");
    let at_home = [("XDG_STATE_HOME", "relative"), ("HOME", home.to_str().unwrap()), CRASH];
    run(dir.path(), TWO, &at_home).exits(ABORTED);
    assert_eq!(journals(&home.join(".local/state/gpuio")).len(), 1);
}

/// Root with the home directory of another user, as sudo may leave it: nothing is made in it, nor
/// where a link of that user's leads.
#[test]
fn no_journal_lies_below_another_users_home() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: only root can give a file away");
    }
    let dir = scratch();
    let (home, mine) = (dir.path().join("home"), dir.path().join("mine"));
    for made in [&home, &mine] {
        std::fs::create_dir(made).unwrap();
    }
    std::os::unix::fs::symlink(&mine, home.join("state")).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), None).unwrap();
    for place in ["", "state"] {
        let named = [("XDG_STATE_HOME", home.join(place)), ("HOME", home.clone())];
        let named = named.each_ref().map(|(name, path)| (*name, path.to_str().unwrap()));
        let ran = run(dir.path(), TWO, &named).exits(0);
        ran.prints(&["not saved", "belongs to user 65534", "-o FILE"]);
    }
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&mine).unwrap().count(), 0);
}

#[test]
fn a_saved_record_is_shown_as_it_was() {
    let dir = scratch();
    let line = "--rw randrw --bs 32k --size 1m --runtime 100ms --directory d -q -o r.json";
    bench(dir.path(), line).exits(0);
    let saved = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let show = |flags: &str| gpuio(dir.path(), &format!("show {flags}"));
    assert_eq!(show("r.json --format json").exits(0).out, saved);
    let text = show("r.json").exits(0).out;
    assert!(text.contains("randrw") && !text.contains("UNFINISHED"), "{text}");
    for format in ["text", "markdown", "html"] {
        let all = show(&format!("r.json --evidence --format {format}")).exits(0).out;
        assert!(all.contains("randrw") && all.contains("process") && all.contains("io"), "{all}");
        let some = show(&format!("r.json --format {format}")).exits(0).out;
        assert!(some.contains("randrw") && some.len() < all.len(), "{some}");
    }
    for (name, begins) in [("r.md", "# Run of "), ("r.html", "<!doctype html>\n")] {
        bench(dir.path(), &line.replace("r.json", name)).exits(0);
        let page = std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(page.starts_with(begins), "{page}");
    }
    show("none.json").exits(2).prints(&["none.json", "can't be read"]);
    show("r.json --format yaml").exits(2).prints(&["formats are"]);
    file(dir.path(), "other.json", "{\"name\": 1}");
    show("other.json").exits(2).prints(&["other.json", "not a gpuio record", "-o NAME.json"]);
    let later = saved.replace("\"schema_version\": 3", "\"schema_version\": 99");
    file(dir.path(), "later.json", &later);
    show("later.json").exits(2).prints(&["schema version 99", "reads 1 to 3"]);
}
