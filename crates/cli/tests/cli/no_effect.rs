//! No option is accepted and ignored: one that would do nothing is refused, with what and why.
//!
//! Keys of loads are tested with the plan, each on loads of every kind (crate `gpuio-job`).

use serde_json::Value;

use crate::tool::{GPUIO, bench, command, file, finish, gpuio, other, scratch, tree, words};

/// Lines that are refused as usage, with what must be said, in a directory with a record.
#[track_caller]
fn refused(cases: &[(&str, &[&str])]) {
    let dir = scratch();
    bench(dir.path(), "--rw read --bs 64k --size 1m --loops 1 -o r.json -q").exits(0);
    for (line, says) in cases {
        let ran = finish(command(dir.path()).args(words(line))).exits(2).prints(says);
        assert!(ran.err.contains("has no effect") || says[0].contains("cannot"), "{ran:?}");
        assert!(ran.err.lines().count() <= 3 || says[0].contains("cannot"), "{ran:?}");
        assert_eq!((ran.out.as_str(), tree(dir.path())), ("", vec!["r.json".to_owned()]), "{line}");
    }
}

/// A run prints before and after it: one text, where both outputs are one file.
#[test]
fn a_note_is_printed_once_in_one_text_and_in_each_of_two() {
    let dir = scratch();
    let job = "[c]\nioengine=psync\nsize=1m\nrw=read\nbs=64k\nfilename=d\ngroup_reporting\n";
    std::fs::write(dir.path().join("c.fio"), job).unwrap();
    let notes = |text: &str| text.matches("results are always given").count();
    let mut shell = other(dir.path(), "bash");
    shell.current_dir(dir.path()).args(["-c", "\"$0\" bench c.fio 2>&1", GPUIO]);
    let one = finish(&mut shell).exits(0).out;
    assert_eq!(notes(&one), 1, "{one}");
    let two = gpuio(dir.path(), "bench c.fio").exits(0);
    assert_eq!((notes(&two.err), notes(&two.out)), (1, 1), "{two:#?}");
}

#[test]
fn of_loads() {
    refused(&[
        ("bench --rw read --rwmixread 70", &["rwmixread=70 (--rwmixread)", "rw=randrw"]),
        ("bench --rate-process poisson", &["(--rate-process)", "rate_iops"]),
        ("bench --seed 7", &["seed=7 (--seed)", "leave it out"]),
        ("bench --norandommap", &["(--norandommap)", "in order", "rw=randread"]),
        ("bench --random-distribution zipf:1.2", &["(--random-distribution)", "in order"]),
        ("bench --fill random", &["(--fill)", "writes nothing"]),
        ("bench --refill --sync", &["writes nothing"]),
        ("bench --depth 8 --engine psync", &["depth=8 (--depth)", "psync has one I/O in flight"]),
        ("bench --gather-batch 4", &["(--gather-batch)", "path host moves each block"]),
        ("bench --shared-fd --threads 2", &["(--shared-fd)", "a file of its own"]),
        (
            "bench --file-prefix p --bs 4k --filename r.json",
            &["(--file-prefix)", "the files are named"],
        ),
        ("bench --rw read --verify=rewrite", &["(--verify)", "verify=pass"]),
        ("bench --inject lost=1%", &["(--inject)", "faults of writes"]),
        ("bench --bs 4k --inject short=5%", &["(--inject)", "can be short", "larger blocks"]),
        ("bench --runtime 1 --inject stall=1s@5s", &["(--inject)", "5s after", "earlier"]),
        ("bench --set ss_dur=5", &["steadystate_duration=5 (--set)", "add steadystate"]),
        (
            "bench --rw read --cufile-set properties.allow_compat_mode=true",
            &["--cufile-set", "--path gds"],
        ),
        ("bench --path auto --cufile-lib ./l.so", &["--cufile-lib", "no job uses one"]),
        ("gdsio -D . -s 1M -i 64K -x 1 -I 0 -k 7", &["random_seed=7 (-k)"]),
        ("gdsio -D . -s 1M -i 64K -x 1 -I 0 -R", &["fill_random=1 (-R)"]),
        ("gdsio -D . -s 1M -i 64K -x 1 -I 1 -b", &["skip_bufregister=1 (-b)"]),
        ("gdsio -D . -s 1M -i 64K -x 1 -I 1 -p", &["-p", "routed"]),
        ("gdsio -D . -s 1M -i 64K -x 1 -I 1 -a 1M", &["align=1M (-a)"]),
    ]);
}

#[test]
fn of_bench_and_what_it_prints() {
    refused(&[
        ("bench --dry-run -o p.ini", &["-o:", "--dry-run prints the plan"]),
        ("bench --dry-run --format json", &["--format:", "--dry-run"]),
        ("bench --size 1m --evidence --format json", &["--evidence:", "text only"]),
        ("show r.json --evidence --format csv", &["--evidence:", "text only"]),
        ("gdsio -D . -s 1M -i 64K -x 1 -I 1 -J --dry-run", &["-J:", "--dry-run"]),
        ("gdsio -D . -s 1M -i 64K -x 1 -I 1 -J --format json", &["-J:", "--format"]),
        ("gdsio -D . -s 1M -i 64K -x 1 -I 1 --ramp 1 --ramp 2", &["--ramp is given twice"]),
    ]);
}

/// A file has the evidence anyhow: a recipe with both flags runs.
#[test]
fn evidence_beside_quiet_is_a_note() {
    let dir = scratch();
    for flag in ["--evidence", "--details"] {
        let line = format!("bench --size 64k --bs 4k --runtime 30ms -q {flag} -o x.json --force");
        let ran = gpuio(dir.path(), &line).exits(0);
        assert!(ran.err.contains(&format!("note: {flag} has no effect")), "{ran:#?}");
    }
}

#[test]
fn of_reports_and_looks() {
    refused(&[
        ("report r.json --format csv --title T", &["--title:", "html, pdf, svg and markdown"]),
        ("report r.json --format markdown --topo none", &["--topo:", "html"]),
        ("report r.json --format markdown --from .", &["--from:", "html"]),
        ("report r.json --format csv --embed-limit 1M", &["--embed-limit:", "html"]),
        ("report r.json --format csv --force", &["--force:", "standard output"]),
        ("report r.json -o - --format html --force", &["--force:", "standard output"]),
        ("check --all --format json", &["--all:", "JSON"]),
        ("check --all -o c.json", &["--all:", "JSON"]),
        ("check --only pcie-link --skip memlock", &["--skip:", "--only"]),
        ("check --explain memlock --all", &["cannot be used with", "--explain"]),
        ("stats --level 2", &["--level:", "--format json"]),
        ("exec --json true", &["cannot be used with", "--json"]),
        ("exec --env --verbose", &["--verbose:", "--env runs nothing"]),
        ("plan --format job --server read=1GB/s", &["--server:", "--format text or json"]),
        ("plan --format gdsio --spec r.json", &["--spec:", "--format text or json"]),
    ]);
    let dir = scratch();
    gpuio(dir.path(), "stats --watch=1ms").exits(2).prints(&["--watch 1ms", "10ms"]);
    let csv = gpuio(dir.path(), "stats --interval 1s --format csv").exits(2);
    csv.prints(&["--format csv: ", "--interval", "or json"]);
    let html = gpuio(dir.path(), "stats 1 --count 2 --format html").exits(2);
    html.prints(&["--format html: ", "--count", "or json"]);
    let both = gpuio(dir.path(), "gdscheck -v -f .");
    assert!(both.err.contains("note: -v has no effect here"), "{both:?}");
}

#[test]
fn of_sweeps() {
    refused(&[
        ("sweep --vary threads=1,2 --over depth=1..8", &["--over:", "--latency-target"]),
        ("sweep --latency-target p99=1ms --order-seed 3", &["--order-seed:", "search"]),
        ("sweep --vary threads=1 --order-seed 3", &["--order-seed:", "one point"]),
        ("sweep --vary threads=1,2 --one-at-a-time", &["--one-at-a-time:", "one axis"]),
        ("sweep --vary threads=1,2 --rwmixread 70", &["rwmixread=70 (--set)", "rw=randrw"]),
        ("sweep --vary streams=1,2", &["streams=1 (--vary)", "path host"]),
        ("sweep --latency-target p99=1ms --engine psync", &["depth=256 (--vary)", "psync"]),
        ("sweep --vary threads=1,2 --cufile-lib ./l.so", &["--cufile-lib:", "no point uses"]),
        (
            "sweep --vary threads=1,2 --cufile-set properties.use_poll_mode=true",
            &["cufile.properties.use_poll_mode:", "no point uses"],
        ),
    ]);
    let dir = scratch();
    // A file's limit is for the search that the command line leaves out.
    let job = "[a]\nioengine=libaio\nrw=randread\nsize=1m\nlatency_target=5ms\n";
    std::fs::write(dir.path().join("a.fio"), job).unwrap();
    let limit = "note: latency_target=5ms (a.fio:5:1): it has no effect here: --vary";
    let line = "sweep a.fio --vary iodepth=1,2 --dry-run";
    let varied = gpuio(dir.path(), line).exits(0);
    assert_eq!(varied.err.matches(limit).count(), 1, "{}", varied.err);
    let searched = gpuio(dir.path(), "sweep a.fio --dry-run").exits(0);
    assert!(!searched.err.contains("no effect"), "{}", searched.err);
    let set = gpuio(dir.path(), "sweep --vary depth=1,2 --set latency_target=5ms").exits(2);
    assert!(set.err.contains("latency_target=5ms (--set): it has no effect here"), "{}", set.err);
    let keep = gpuio(dir.path(), "sweep --vary threads=1,2 --set unlink=1").exits(2);
    assert!(keep.err.contains("share their files"), "{keep:?}");
    for preset in ["quick", "guide", "paths"] {
        let line = format!("sweep --preset {preset} --gpu software --dry-run");
        gpuio(dir.path(), &line).exits(0);
    }
}

/// The effects of flags that no other test uses.
#[test]
fn what_flags_change() {
    let dir = scratch();
    let run = |line: &str| finish(command(dir.path()).args(words(line))).exits(0);
    let load = "--rw read --bs 64k --size 1m --loops 1 -q";
    run(&format!("bench {load} --runtime 300ms -o r.json"));
    run(&format!("bench {load} --runtime 300ms --no-watch -o w.json"));
    let record = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(dir.path().join(name)).unwrap()).unwrap()
    };
    assert!(record("w.json")["watched"].is_null(), "nothing was sampled");
    let titled = run("report r.json --format markdown --title Nightly");
    assert!(titled.out.contains("# Nightly\n"), "{titled:?}");
    let picture = run("report r.json --format svg --title Nightly");
    assert!(picture.out.contains(">Nightly</text>"), "{picture:?}");
    let whole = run("report r.json --format html -o -").out;
    let bare = run("report r.json --format html -o - --embed-limit 1").out;
    assert!(bare.len() < whole.len(), "{} of {} bytes", bare.len(), whole.len());
    let check = |line: &str| finish(command(dir.path()).args(words(line))).out.lines().count();
    assert!(check("check --all") >= check("check"), "each rule on a line of its own");
    let sweep = |more: &str| {
        let axes = "--vary threads=1,2 --vary depth=1,2,3,4 --dry-run";
        run(&format!("sweep {axes} --size 1m {more}")).out
    };
    assert!(sweep("").starts_with("8 points") && sweep("--one-at-a-time").starts_with("5 points"));
    let orders: std::collections::BTreeSet<String> =
        (0..4).map(|seed| sweep(&format!("--order-seed {seed}"))).collect();
    assert!(orders.len() > 1, "{orders:?}");
    let reads = "bench --rw read --size 1m --loops 1 --dry-run --gpu none";
    for flag in ["--overwrite", "--destroy-data-on /dev/null"] {
        let note = format!("{}: it has no effect here", flag.split(' ').next().unwrap());
        assert!(run(&format!("{reads} {flag}")).out.contains(&note), "{flag}");
    }
    assert!(!run(reads).out.contains("no effect here"));
    // A wait between runs, and permissions that reach them.
    file(dir.path(), "mine", &"x".repeat(1 << 20));
    let runs = "--vary bs=64k,128k --repeats 1 --rw write --filename mine --loops 1 -q";
    let refused = gpuio(dir.path(), &format!("sweep {runs} -o a --destroy-data-on /dev/null"));
    assert!(refused.code != 0 && refused.out.contains("mine"), "{refused:?}");
    let began = std::time::Instant::now();
    run(&format!("sweep {runs} -o b --overwrite --cool-down 500ms"));
    assert!(began.elapsed() >= std::time::Duration::from_millis(500));
}

/// A key that some points use is in force there; the others run without, by a command that can be
/// run by hand.
#[test]
fn a_key_that_some_points_use() {
    let dir = scratch();
    let line = "sweep --vary rw=read,randread --norandommap --seed 7 --bs 64k --size 1m --loops 1 \
                --repeats 1 -o s -q";
    gpuio(dir.path(), line).exits(0);
    let mut seen = 0;
    for entry in std::fs::read_dir(dir.path().join("s")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let Ok(record) = serde_json::from_str::<Value>(&text) else { continue };
        let (Some(command), true) = (record["command"].as_array(), record["plan"].is_object())
        else {
            continue;
        };
        seen += 1;
        let said = command.iter().any(|word| word == "norandommap");
        let random = record["plan"]["jobs"][0]["order"].to_string().contains("andom");
        assert_eq!(said, random, "{command:?}");
        let by_hand = command[1..].iter().map(|word| word.as_str().unwrap());
        finish(crate::tool::command(dir.path()).args(by_hand)).exits(0);
    }
    assert_eq!(seen, 2);
}

#[test]
fn of_job_files() {
    let dir = scratch();
    let load = "size=1m\nbs=64k\nloops=1\ndirectory=d\n";
    file(dir.path(), "own.ini", &format!("[global]\n{load}[a]\nrw=read\nrwmixread=70\n"));
    bench(dir.path(), "own.ini")
        .exits(2)
        .prints(&["job 'a', rwmixread=70 (own.ini:8:1): it has no"]);
    file(dir.path(), "mixed.ini", &format!("[global]\n{load}[a]\nrw=rw\nrwmixread=70\n"));
    file(dir.path(), "late.ini", &format!("[a]\n{load}[global]\nrw=write\n  bs=4k\n"));
    let late = bench(dir.path(), "late.ini").exits(2);
    late.prints(&[
        "late.ini:7:1: 'rw' has no effect here",
        "late.ini:8:3: 'bs' has no effect here",
    ]);
    // A flag took its effect away: that is the user's choice, and is said.
    let over = bench(dir.path(), "mixed.ini --rw read").exits(0);
    over.prints(&["note: 'rwmixread' (mixed.ini:8:1) has no effect here"]);
    let other = bench(dir.path(), "own.ini --bs 32k --threads 2").exits(2);
    other.prints(&["rwmixread=70 (own.ini:8:1)"]);
    // Some of the jobs use it.
    let some = format!("[global]\n{load}refill\n[a]\nrw=read\n[b]\nstonewall\nrw=write\n");
    file(dir.path(), "some.ini", &some);
    let ran = bench(dir.path(), "some.ini").exits(0);
    assert_eq!(ran.err, "");
    // A note on one of several jobs names it.
    let one = format!("[global]\nioengine=sync\n{load}[r]\nrw=read\nrwmixread=70\n[w]\nrw=write\n");
    file(dir.path(), "one.ini", &one);
    let ran = bench(dir.path(), "one.ini").exits(0);
    ran.prints(&["note: job 'r': 'rwmixread' (one.ini:9:1) has no effect here"]);
    // As fio runs it, with a note.
    file(
        dir.path(),
        "fio.ini",
        &format!("[global]\nname=nightly\nioengine=sync\niodepth=32\nthread\n{load}[a]\nrw=read\n"),
    );
    let ran = bench(dir.path(), "fio.ini -o f.json").exits(0);
    let notes: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("note: ")).collect();
    assert_eq!(notes.len(), 2, "{ran:?}");
    assert!(notes.iter().any(|note| note.starts_with("note: 'thread' (fio.ini:5:1)")), "{ran:?}");
    assert!(notes.iter().any(|note| note.starts_with("note: 'iodepth' (fio.ini:4:1)")), "{ran:?}");
    // The run's name is in what is printed of it, and in what is made of the record.
    assert!(ran.out.contains("run:     nightly"), "{ran:?}");
    let page = gpuio(dir.path(), "report f.json --format markdown").exits(0);
    assert!(page.out.contains("\n# nightly\n"), "{page:?}");
}

/// A setting that cuFile would pass over in silence is refused with what is near.
#[test]
fn of_cufile() {
    let dir = scratch();
    let set = |key: &str| {
        let line = format!("--path gds --gpu software --size 1m --cufile-set {key}=1");
        bench(dir.path(), &line).exits(2)
    };
    let nonsense = set("properties.nonsense");
    nonsense
        .prints(&["no key 'properties.nonsense'; nearest: cufile.properties.", ", cufile.prop"]);
    set("properties.allow_compat").prints(&["nearest: cufile.properties.allow_compat_mode"]);
    set("zebra.stripes").prints(&["see docs/check.md"]);
    assert!(tree(dir.path()).is_empty());
}
