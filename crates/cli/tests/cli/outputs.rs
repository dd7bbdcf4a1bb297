//! Files that verbs write: directories are made, and only what gpuio wrote is replaced.

use serde_json::json;

use crate::tool::{bench, command, file, finish, gpuio, plain, scratch};

const LOAD: &str = "--rw read --bs 64k --size 1m --loops 1 --directory d -q";

#[test]
fn every_verb_writes_files() {
    let dir = scratch();
    let dir = dir.path();
    bench(dir, &format!("{LOAD} -o r.json")).exits(0);
    bench(dir, &format!("{LOAD} -o s.json")).exits(0);
    for (line, begins) in [
        ("check --format json", "{"),
        ("compare r.json s.json --format json --despite all", "{"),
        ("show r.json --format summary", "gpuio "),
        ("topo", "<svg"),
        ("why --format json", "{"),
    ] {
        let name = format!("out/{}.svg", line.split(' ').next().unwrap());
        let ran = gpuio(dir, &format!("{line} --output {name}"));
        assert!(ran.code < 2 && ran.out.is_empty(), "{line}: {ran:?}");
        let text = std::fs::read_to_string(dir.join(&name)).unwrap();
        assert!(text.trim_start_matches("<?xml version=\"1.0\"?>\n").starts_with(begins), "{text}");
        gpuio(dir, &format!("{line} -o {name}")).exits(2).prints(&["exists already", "--force"]);
        let again = gpuio(dir, &format!("{line} -o {name} --force"));
        assert!(again.code < 2, "{line}: {again:?}");
        // Somebody's own line makes it somebody's own file.
        file(dir, &name, "mine");
        gpuio(dir, &format!("{line} -o {name} --force")).exits(2).prints(&["did not write"]);
        assert_eq!(std::fs::read_to_string(dir.join(&name)).unwrap(), "mine");
    }
}

/// Text for people is ASCII there; files and formats for programs stay as they are.
#[test]
fn a_locale_without_utf8_gets_ascii() {
    let dir = scratch();
    let dir = dir.path();
    bench(dir, &format!("{LOAD} --threads 2 --depth 4 -o r.json")).exits(0);
    let ran = |locale: &str, line: &str| {
        let mut gpuio = command(dir);
        finish(gpuio.env("LC_ALL", locale).args(line.split(' '))).exits(0).out
    };
    let [ascii, utf8] = ["C", "C.UTF-8"].map(|locale| ran(locale, "show r.json"));
    assert!(utf8.contains("2×4"), "{utf8}");
    assert!(ascii.is_ascii() && ascii.contains("2x4"), "{ascii}");
    assert!(ran("POSIX", "exec --help").is_ascii());
    let [ascii, utf8] = ["C", "C.UTF-8"].map(|locale| ran(locale, "show r.json --format markdown"));
    assert!(ascii == utf8 && !utf8.is_ascii(), "{ascii}");
    ran("C", "show r.json --format text -o r.txt");
    assert!(std::fs::read_to_string(dir.join("r.txt")).unwrap().contains("2×4"));
}

/// As of `gpuio bench`: the ending says the format, and `--format` can't say another.
#[test]
fn the_ending_of_a_name_is_its_format() {
    let dir = scratch();
    let dir = dir.path();
    bench(dir, &format!("{LOAD} -o r.json")).exits(0);
    bench(dir, &format!("{LOAD} -o s.json")).exits(0);
    for (line, own) in [("show r.json", "plan"), ("compare r.json s.json --despite all", "")] {
        let formats = [("json", "json"), ("md", "markdown"), ("html", "html"), ("csv", "csv")];
        let own = (!own.is_empty()).then_some(("ini", own));
        for (ending, format) in formats.into_iter().chain(own) {
            let name = format!("{}.{ending}", line.split(' ').next().unwrap());
            gpuio(dir, &format!("{line} -o {name}")).exits(0);
            let printed = gpuio(dir, &format!("{line} --format {format}")).exits(0).out;
            assert_eq!(std::fs::read_to_string(dir.join(&name)).unwrap(), printed, "{name}");
        }
        let other = gpuio(dir, &format!("{line} --format csv -o new.md")).exits(2);
        other.prints(&["--format csv -o new.md: the file's name says markdown"]);
        gpuio(dir, &format!("{line} --format csv --force -o any.txt")).exits(0);
    }
}

#[test]
fn only_what_gpuio_wrote_is_replaced() {
    let dir = scratch();
    let dir = dir.path();
    bench(dir, &format!("{LOAD} -o new/dir/r.json")).exits(0);
    let first = std::fs::read(dir.join("new/dir/r.json")).unwrap();
    bench(dir, &format!("{LOAD} -o new/dir/r.json --force")).exits(0);
    assert!(std::fs::read(dir.join("new/dir/r.json")).unwrap() != first);
    // A copy has no attribute, so nothing says whether somebody changed it.
    file(dir, "copy.json", std::str::from_utf8(&first).unwrap());
    bench(dir, &format!("{LOAD} -o copy.json --force")).exits(2).prints(&["did not write"]);
    assert_eq!(std::fs::read(dir.join("copy.json")).unwrap(), first);
    gpuio(dir, "plan -o jobs.ini").exits(0);
    gpuio(dir, "plan -o jobs.ini --force").exits(0);
    let own = std::fs::read_to_string(dir.join("jobs.ini")).unwrap() + "# mine\n";
    file(dir, "jobs.ini", &own);
    gpuio(dir, "plan -o jobs.ini --force").exits(2).prints(&["changed since"]);
    assert_eq!(std::fs::read_to_string(dir.join("jobs.ini")).unwrap(), own);
}

#[test]
fn units_colours_and_defaults() {
    let dir = scratch();
    let dir = dir.path();
    bench(dir, &format!("{LOAD} -o r.json")).exits(0);
    let si = gpuio(dir, "show r.json --units si").exits(0).out;
    assert!(si.contains("B/s") && !si.contains("iB/s"), "{si}");
    // So have sentences that the record saved in others, and what the page's scripts print.
    for line in [
        "show r.json --evidence",
        "report r.json --format markdown -o -",
        "report r.json --format html -o -",
        "top --interval 100ms --count 1",
    ] {
        let iec = gpuio(dir, line).exits(0).out;
        let si = gpuio(dir, &format!("{line} --units si")).exits(0).out;
        let [iec, si] = [iec, si].map(|page| {
            let words = page.split("<script").next().unwrap_or_default();
            let is_of_1024 = |line: &&str| {
                let of = |unit: &str| {
                    line.match_indices(unit)
                        .any(|(at, _)| line[..at].ends_with(|before: char| before.is_ascii_digit()))
                };
                line.contains("MiB/s") || [" KiB", " MiB", " GiB"].into_iter().any(of)
            };
            let found: Vec<String> = words.lines().filter(is_of_1024).map(str::to_owned).collect();
            (found, page.contains("\"si\":true"))
        });
        assert!(!iec.0.is_empty() && !iec.1, "{line}");
        assert_eq!(si, (Vec::new(), line.contains("html")), "{line}");
    }
    let show = |name: &str, value: &str| {
        let mut command = command(dir);
        finish(command.args(["show", "r.json", "--format", "summary"]).env(name, value))
    };
    assert!(!show("GPUIO_UNITS", "si").exits(0).out.contains("iB/s"));
    assert!(show("GPUIO_COLOR", "always").exits(0).out.contains("\x1b[33mToo short\x1b[0m"));
    assert!(!show("CLICOLOR", "1").exits(0).out.contains('\x1b'), "no terminal, no colour");
    file(dir, "config", "# mine\nunits = si\n");
    assert!(!show("GPUIO_CONFIG", "config").exits(0).out.contains("iB/s"));
    file(dir, "config", "verify = full\n");
    show("GPUIO_CONFIG", "config").exits(2).prints(&["config:1: 'verify' has no default"]);
    let mut command = command(dir);
    command.args(["bench", "--rw", "read", "--bs=64k", "--size=1m", "--loops=1"]);
    let ran = finish(command.env("GPUIO_DIRECTORY", "other")).exits(0);
    ran.prints(&["note: --directory other, by GPUIO_DIRECTORY"]);
    assert!(dir.join("other").is_dir());
}

#[test]
fn fios_words_are_flags() {
    let dir = scratch();
    let line = "--name=a --rw=randread --bs=4k --iodepth=4 --numjobs=2 --ioengine=libaio \
                --direct=0 --size=1m --number_ios=9 --group_reporting --dry-run";
    let plan = bench(dir.path(), line).exits(0);
    for setting in
        ["[a]", "depth = 4", "threads = 2", "engine = libaio", "direct = 0", "io_size = 36K"]
    {
        assert!(plan.out.lines().any(|line| line == setting), "{setting}: {}", plan.out);
    }
    let note = "--ioengine is fio's word, so what no flag says is as in fio: direct=0";
    assert!(plan.out.contains(note), "{}", plan.out);
    for (line, native) in [
        ("--name=a --rw=randread --size=1m --iodepth=2", false),
        ("--name=a --rw=randread --size=1m --depth=2", true),
        ("--rw=randread --size=1m --iodepth=2", true),
    ] {
        let plan = bench(dir.path(), &format!("{line} --dry-run")).exits(0);
        let said = (plan.out.contains("runtime = 10s"), plan.out.contains("is fio's word"));
        assert_eq!(said, (native, !native), "{line}: {}", plan.out);
    }
    bench(dir.path(), "--thinkcycles=5").exits(2).prints(&["thinkcycles"]);
}

/// As fio has it: each name begins a job, and flags before the first are for all.
#[test]
fn each_of_several_names_begins_a_job() {
    let dir = scratch();
    let line = "--ioengine=psync --size=1m --name=a --rw=read --bs=8k --name=b --rw=randread";
    bench(dir.path(), &format!("{line} -o run.json")).exits(0);
    let text = std::fs::read_to_string(dir.path().join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |job: usize| &record["plan"]["jobs"][job];
    assert_eq!((&of(0)["name"], &of(1)["name"]), (&"a".into(), &"b".into()));
    let size = |job: usize| record["jobs"][job]["read"]["ios"].as_u64().unwrap();
    assert_eq!((size(0), size(1)), (128, 256));
    let sweep = gpuio(dir.path(), &format!("sweep {line} --vary iodepth=1,2"));
    sweep.exits(2).prints(&["--name begins a job, and here are 2"]);
}

/// Root keeps the HOME of another user (`sudo -E`): that user's file decides nothing.
#[test]
fn a_configuration_of_another_user_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = scratch();
    let config = dir.path().join("home/.config/gpuio");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config"), "directory = elsewhere\n").unwrap();
    let line = ["bench", "--rw", "read", "--bs=4k", "--size=4k", "--loops=1", "--dry-run"];
    let run = || {
        let mut command = command(dir.path());
        command.env_remove("XDG_CONFIG_HOME").env("HOME", dir.path().join("home"));
        finish(command.args(line)).exits(0)
    };
    run().prints(&["note: --directory elsewhere, by "]);
    std::os::unix::fs::chown(config.join("config"), Some(65534), None).unwrap();
    let refused = run();
    assert!(!refused.out.contains("elsewhere"), "{}", refused.out);
    refused.prints(&["no default of it is used", "belongs to user 65534"]);
}

/// `show` and `report` say so of a record whose rate or path was changed.
#[test]
fn a_changed_record_is_doubted_where_it_is_shown() {
    let dir = scratch();
    let line = "--rw randread --bs 4k --size 1m --loops 2 --directory d --path staged \
                --gpu software";
    bench(dir.path(), &format!("{line} -o run.json")).exits(0);
    let text = std::fs::read_to_string(dir.path().join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let save = |record: &serde_json::Value| {
        std::fs::write(dir.path().join("changed.json"), record.to_string()).unwrap();
    };
    let mut changed = record.clone();
    let rate = &mut changed["jobs"][0]["read"]["bytes_per_s"];
    *rate = (rate.as_f64().unwrap() * 1.5).into();
    save(&changed);
    for format in ["text", "summary", "markdown", "html"] {
        let show = |name| {
            let shown = gpuio(dir.path(), &format!("show {name} --format {format}")).exits(0);
            assert!(!shown.err.contains("do not follow"), "said twice: {}", shown.err);
            shown.out
        };
        let (whole, changed) = (show("run.json"), show("changed.json"));
        let doubted = |text: &str| text.contains("DOUBTFUL") && text.contains("do not follow");
        assert!(doubted(&changed) && !doubted(&whole), "{changed}\n{whole}");
    }
    let csv = gpuio(dir.path(), "report changed.json --format csv").exits(0);
    assert!(csv.out.contains("do not follow"), "{}", csv.out);
    let csv = gpuio(dir.path(), "show changed.json --format csv").exits(0);
    assert!(csv.out.contains("contradiction: Figures do not follow"), "{}", csv.out);
    let line = gpuio(dir.path(), "show changed.json --format gdsio").exits(0);
    assert!(
        line.out.contains("\n# doubt: ") && line.out.contains(" Figures do not follow"),
        "{}",
        line.out
    );
    assert!(csv.err.is_empty() && line.err.is_empty(), "said twice: {}{}", csv.err, line.err);
    // The verdict in words alone, and with its route.
    for (forged, of) in [
        (&[("bounce (host)", "direct")][..], "by its route and source"),
        (&[("bounce (host)", "direct"), ("bounce_host", "direct")], "path staged can't take"),
    ] {
        let mut changed = record.clone();
        let proof = &mut changed["jobs"][0]["proof"];
        let text = forged.iter().fold(proof.to_string(), |text, (a, b)| text.replace(a, b));
        *proof = serde_json::from_str(&text).unwrap();
        save(&changed);
        let found = gpuio(dir.path(), "show changed.json --check").exits(1).out;
        assert!(found.contains("path taken") && found.contains(of), "{found}");
    }
}

/// The digest of the content finds what stands in one place alone, and no copy of a changed record
/// hides it. Blanks, order and spelling are no change.
#[test]
fn any_change_of_a_record_is_found_by_its_digest() {
    let dir = scratch();
    bench(dir.path(), "--rw read --bs 4k --size 64k --loops 1 -o run.json").exits(0);
    let text = std::fs::read_to_string(dir.path().join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let checked = |value: &serde_json::Value, code: i32| {
        std::fs::write(dir.path().join("other.json"), value.to_string()).unwrap();
        let found = gpuio(dir.path(), "show other.json --check").exits(code).out;
        // A copy has no field that this gpuio does not know.
        if value.pointer("/host/more").is_none() {
            std::fs::remove_file(dir.path().join("copy.json")).ok();
            gpuio(dir.path(), "show other.json -o copy.json").exits(0);
            gpuio(dir.path(), "show copy.json --check").exits(code);
        }
        found
    };
    let reversed = record.as_object().unwrap().iter().rev();
    let reversed: serde_json::Map<_, _> = reversed.map(|(k, v)| (k.clone(), v.clone())).collect();
    checked(&reversed.into(), 0);
    for (place, value) in [
        ("/host/kernel/release", json!("9.9")),
        ("/warnings", json!([])),
        ("/setup/open_ns", json!(1)),
        ("/command/0", json!("fio")),
        ("/content_sha256", json!("")),
        ("/host", serde_json::Value::Null),
    ] {
        let mut changed = record.clone();
        let old = changed.pointer_mut(place).unwrap_or_else(|| panic!("no {place}"));
        match value {
            serde_json::Value::Null => old["more"] = json!(1),
            value => *old = value,
        }
        let found = checked(&changed, 1);
        assert!(found.contains("it was changed after gpuio wrote it"), "{place}: {found}");
    }
    let mut without = record.clone();
    without.as_object_mut().unwrap().shift_remove("content_sha256");
    let found = checked(&without, 1);
    assert!(found.contains("has no digest of its content"), "{found}");
    // Other versions may have written none: nothing is wrong, and what shows it says so.
    without["tool"]["version"] = json!("0.0.9");
    let found = checked(&without, 3);
    assert!(found.contains("whether it was changed is NOT known"), "{found}");
    for line in ["show other.json", "show other.json --format markdown", "report other.json"] {
        let shown = gpuio(dir.path(), line).exits(0);
        let words = format!("{}{}", shown.out, shown.err);
        assert!(words.contains("Whether the record was changed is not known"), "{line}: {words}");
    }
}

/// `show --check` finds a record that was changed in one place, whichever.
#[expect(clippy::too_many_lines, reason = "one line for each change")]
#[test]
fn a_changed_record_is_found() {
    let dir = scratch();
    let line = "--rw randrw --bs 4k,64k --size 1m --loops 40 --threads 2 --directory d \
                --path staged --gpu software --verify=inline";
    bench(dir.path(), &format!("{line} -o run.json")).exits(0);
    let whole = gpuio(dir.path(), "show run.json --check").exits(0).out;
    assert!(whole.contains(" checks hold."), "{whole}");
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("run.json")).unwrap())
            .unwrap();
    std::fs::create_dir(dir.path().join("changed")).unwrap();
    let mut expected = Vec::new();
    let mut put = |changed: &serde_json::Value, place: &str, of: &'static str| {
        let path = dir.path().join(format!("changed/{:03}.json", expected.len()));
        std::fs::write(path, changed.to_string()).unwrap();
        expected.push((place.to_owned(), of));
    };
    for (place, of) in [
        ("/jobs/0/read/ios", "latencies"),
        ("/jobs/0/read/bytes", "bytes of its threads"),
        ("/jobs/0/write/bytes_per_s", "bytes per second"),
        ("/jobs/0/read/iops", "IOPS"),
        ("/jobs/0/last_done_ns", "bytes per second"),
        ("/jobs/0/read/latency/total/p50_ns", "latency, p50"),
        ("/jobs/0/read/latency/total/p90_ns", "latency, p90"),
        ("/jobs/0/read/latency/gpu/count", "latency of the GPU leg: values"),
        ("/jobs/0/read/latency/total/buckets/0/1", "latency: values"),
        ("/jobs/0/workers/1/bytes", "bytes of its threads"),
        ("/jobs/0/gpus/0/ios", "I/Os of its GPUs"),
        ("/jobs/0/series/0/read_bytes", "in its series"),
        ("/jobs/0/series/0/read_ios", "in its series"),
        ("/jobs/0/series/0/write_latency_ns", "in its series"),
        ("/jobs/0/series/0/p50_ns", "interval until"),
        ("/jobs/0/failed", "failed I/Os"),
        ("/jobs/0/verify/bad_blocks", "mismatches"),
        ("/jobs/0/verify/bad_words", "wrong words"),
        ("/jobs/0/read/latency/total/mean_ns", "latency, mean"),
        ("/jobs/0/write/latency/file/mean_ns", "latency of the file leg, mean"),
        ("/jobs/0/read/latency/total/stddev_ns", "latency, deviation"),
        ("/totals/0/read/latency/total/mean_ns", "reads: latency, mean"),
        ("/totals/0/cpu/us_per_mib", "the total of group 0: CPU time per MiB"),
        ("/totals/0/cpu/cores_busy", "the total of group 0: processors kept busy"),
        ("/jobs/0/cpu/us_per_mib", "CPU time per MiB"),
        ("/jobs/0/cpu/user_s", "processors kept busy"),
        ("/totals/0/read/bytes", "the total of group 0, reads: bytes"),
        ("/totals/0/write/bytes_per_s", "the total of group 0, writes: bytes per second"),
        ("/totals/0/read/iops", "the total of group 0, reads: IOPS"),
        ("/totals/0/read/latency/total/p90_ns", "the total of group 0, reads: latency, p90"),
        ("/totals/0/read/latency/total/max_ns", "other values than those of its jobs"),
    ] {
        let mut changed = record.clone();
        let figure = changed.pointer_mut(place).unwrap_or_else(|| panic!("no {place}"));
        // An interval's median is only known to be below its maximum.
        let times = if place == "/jobs/0/series/0/p50_ns" { 1000 } else { 2 };
        *figure = match figure.as_u64() {
            Some(count) => serde_json::Value::from(count * times + 1),
            None => serde_json::Value::from(figure.as_f64().unwrap() * 2.0),
        };
        put(&changed, place, of);
    }
    let text = record["plan_text"].as_str().unwrap().to_owned();
    let warnings = record["warnings"].as_array().unwrap();
    let inline = warnings.iter().position(|one| one["warning"] == "work_between_ios").unwrap();
    let next = |digit: u32| char::from_digit((digit + 1) % 10, 10);
    let other = |c: char| c.to_digit(10).and_then(next).unwrap_or(c);
    let other: String = warnings[inline]["text"].as_str().unwrap().chars().map(other).collect();
    let inline = format!("/warnings/{inline}/text");
    let own = |name: &str| {
        let all = record["jobs"][0]["proof"]["evidence"].as_array().unwrap();
        all.iter().position(|one| one["name"] == name).unwrap()
    };
    let read_by_process = format!("/jobs/0/proof/evidence/{}/observed_bytes", own("process_io"));
    let completed = format!("/jobs/0/proof/evidence/{}/expected_bytes", own("own"));
    let legs = format!("/jobs/0/proof/evidence/{}/why", own("own"));
    let sentence = record["jobs"][0]["proof"]["sentence"].as_str().unwrap();
    let (words, _) = sentence.split_once(':').unwrap();
    let sentence = format!("{words}: straight into GPU memory, as measured.");
    for (place, value, of) in [
        ("/plan/software_gpu", json!(false), "the plan: software_gpu: false recorded"),
        ("/plan/jobs/0/gpus/0/software", json!(false), "which its name rules out"),
        ("/warnings", json!([]), "warnings: software_gpu is missing"),
        ("/plan/jobs/0/blocks/0/min_bytes", json!(65536), "plan_text: "),
        ("/plan/jobs/0/depth", json!(77), "plan_text: "),
        ("/plan_text", json!(text.replace("threads = 2", "threads = 1")), "plan_text: "),
        ("/ended", json!("interrupted"), "ended: interrupted recorded"),
        ("/error", json!("a drive is gone"), "ended: complete recorded"),
        ("/jobs/0/cache/process_read_bytes", json!(5), "process_read_bytes: 5 recorded"),
        ("/jobs/0/verify/timed_bytes", json!(1_u64 << 40), "1099511627776 bytes of the load"),
        ("/jobs/0/verify/pass_bytes", json!(1_u64 << 40), "after the load, and its files have"),
        (&read_by_process, json!(7), "process_io of reads: bytes: '7' recorded"),
        ("/warnings", json!([]), "work_between_ios of job 'job' is missing"),
        (&inline, json!(other), "' by its figures"),
        ("/totals", json!([]), "groups of jobs with a total: 0 recorded, 1 by its counts"),
        ("/jobs/0/proof/actual", json!("host, engine psync"), "recorded, 'staged, engine "),
        ("/jobs/0/verify/subject", json!("reads"), "verified reads recorded, timed_reads"),
        ("/jobs/0/verify/checked_in", json!("GPU memory, by a kernel"), "' by the plan"),
        ("/jobs/0/verify/timed_blocks", json!(1), "bytes verified in 1 blocks of at most 65536"),
        ("/jobs/0/first_done_ns", json!(1), "first thread done, ns: 1 recorded"),
        ("/jobs/0/workers", json!([]), "threads: 0 recorded, 2 by its counts"),
        ("/jobs/0/write/latency/total/max_ns", json!(1), "largest: 1 ns recorded"),
        ("/jobs/0/write/latency/total/p99_ns", json!(null), "p99: nothing recorded"),
        ("/jobs/0/cpu/us_per_mib", json!(null), "CPU time per MiB: nothing recorded"),
        (&completed, json!(7), "own of reads: bytes expected: '7' recorded"),
        (&legs, json!("all passed no host memory"), "own of reads: reason: 'all passed no host"),
        ("/jobs/0/proof/sentence", json!(sentence), "path taken: sentence: '"),
        ("/jobs/0/proof/as_requested", json!(false), "as_requested: 'false' recorded, 'true' by"),
        ("/jobs/0/proof/verdict/words", json!("direct"), "verdict.words: 'direct' recorded, 'bou"),
        ("/jobs/0/proof/requested", json!("gds"), "requested path: 'gds' recorded, 'staged, "),
        ("/plan/jobs/0/gpus/0/name", json!("NVIDIA H100"), "true recorded, which its name rules"),
        ("/jobs/0/proof", json!(null), "job 'job': the evidence of its path is missing"),
        ("/started_at", json!("2026-13-05T10:00:00Z"), "the run: started_at: "),
    ] {
        let mut changed = record.clone();
        *changed.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value;
        put(&changed, place, of);
    }
    let shown = gpuio(dir.path(), "show changed --check").exits(1).out;
    let mut open = &*shown;
    for (nth, (place, of)) in expected.iter().enumerate() {
        // Each file's wrong figures, and then its name.
        let (found, rest) = open.split_once(&format!("changed/{nth:03}.json: ")).unwrap();
        assert!(found.contains(of) && found.contains("wrong: "), "{place}:\n{found}");
        open = rest;
    }
    // One of another version is not called checked: its conclusions are not made again.
    let mut other = record.clone();
    other["tool"]["version"] = json!("99.0.0");
    other["jobs"][0]["proof"]["sentence"] = json!(sentence);
    other.as_object_mut().unwrap().shift_remove("content_sha256");
    std::fs::write(dir.path().join("changed.json"), other.to_string()).unwrap();
    let found = gpuio(dir.path(), "show changed.json --check").exits(3).out;
    assert!(found.contains("it names gpuio 99.0.0, ") && found.contains("NOT checked"), "{found}");
    let found = gpuio(dir.path(), "show changed.json --check --format json").exits(3).out;
    for check in ["all", "digest", "conclusions"] {
        let row = format!("\"check\": \"{check}\",\n      \"result\": \"unknown\",");
        assert!(found.contains(&row), "{check}: {found}");
    }
    // Nothing reads it: it is named.
    let mut other = record.clone();
    other["jobs"][0]["read"]["best_bytes_per_s"] = json!(1e12);
    std::fs::write(dir.path().join("changed.json"), other.to_string()).unwrap();
    let found = gpuio(dir.path(), "show changed.json --check").exits(1).out;
    let named = "\nunknown field jobs[].read.best_bytes_per_s: NOT checked\n";
    assert!(found.contains(named), "{found}");
    let mut changed = record.clone();
    changed["started_at"] = json!("2026-13-05T10:00:00Z");
    std::fs::write(dir.path().join("changed.json"), changed.to_string()).unwrap();
    // A whole directory; its page has the same digests.
    let digest = |name: &str| {
        let sum = plain("sha256sum").arg(dir.path().join(name)).output().unwrap().stdout;
        String::from_utf8(sum).unwrap()[..64].to_owned()
    };
    let all = gpuio(dir.path(), "show . --check").exits(1).out;
    assert!(["run.json", "changed.json"].iter().all(|name| all.contains(&digest(name))), "{all}");
    assert!(all.ends_with("The figures of 1 of 2 records hold.\n"), "{all}");
    let page = gpuio(dir.path(), "report . --format markdown").exits(0).out;
    assert!(page.contains(&format!("{}  run.json\n", digest("run.json"))), "{page}");
    std::fs::write(dir.path().join("changed.json"), "{").unwrap();
    let cut = gpuio(dir.path(), "show . --check").exits(1).out;
    assert!(cut.ends_with("The figures of 1 of 1 record hold; 1 file can't be read.\n"), "{cut}");
    // A file that is missing among several does not keep the others from being checked.
    let some = gpuio(dir.path(), "show gone.json run.json changed.json --check").exits(1).out;
    for words in ["run.json: all ", "\nNot checked: gone.json: ", "\nNot checked: changed.json: "] {
        assert!(some.contains(words), "{words}: {some}");
    }
    assert!(
        some.ends_with("The figures of 1 of 1 record hold; 2 files can't be read.\n"),
        "{some}"
    );
    let line = "show gone.json run.json --check --format json";
    let some: serde_json::Value =
        serde_json::from_str(&gpuio(dir.path(), line).exits(1).out).unwrap();
    let of = |value: &serde_json::Value| {
        [&value["record"], &value["check"], &value["result"]]
            .map(|one| one.as_str().unwrap_or_default().to_owned())
    };
    let rows: Vec<[String; 3]> = some["checks"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(rows, [["run.json", "all", "holds"], ["", "the file", "unread"]], "{some}");
    assert_eq!(some["records"][0]["sha256"], digest("run.json"));
    gpuio(dir.path(), "show gone.json --check").exits(2).prints(&["gone.json"]);
    gpuio(dir.path(), "show run.json --check --format csv").exits(2).prints(&["text or json"]);
    gpuio(dir.path(), "show run.json run.json").exits(2).prints(&["--check"]);
    let refused = "sweep --size 64k --bs 4k --runtime 30ms --vary path=gds --repeats 1 -o none";
    gpuio(dir.path(), refused);
    let none = gpuio(dir.path(), "show none --check").exits(1).out;
    assert!(none.ends_with("0 records checked.\n"), "{none}");
}

/// Storage that leaves out zeros moves them faster: no format passes that over.
#[test]
fn zeros_and_data_that_repeats_are_said_in_every_format() {
    let dir = scratch();
    let dir = dir.path();
    let load = "--bs 64k --size 4m --runtime 1200ms -q --directory";
    bench(dir, &format!("--rw write --fill zero --keep {load} zero -o written.json")).exits(0);
    bench(dir, &format!("--rw read {load} zero -o zero.json")).exits(0);
    bench(dir, &format!("--rw read {load} pattern -o pattern.json")).exits(0);
    let read = "32 of 32 sampled blocks are all zero";
    for (name, words) in [("written", "zeros were written"), ("zero", read)] {
        for format in ["text", "summary", "csv", "gdsio", "markdown"] {
            let shown = gpuio(dir, &format!("show {name}.json --format {format}")).exits(0).out;
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains(words), "{name}, {format}: {shown}");
        }
        for format in ["markdown", "csv", "fio-json", "openmetrics"] {
            let shown = gpuio(dir, &format!("report {name}.json --format {format}")).exits(0).out;
            assert!(shown.contains(words), "{name}, {format}: {shown}");
        }
    }
    // Alike on both sides it is no difference, and both may be faster.
    bench(dir, &format!("--rw read {load} zero -o again.json")).exits(0);
    let both = gpuio(dir, "compare zero.json again.json").exits(0).out;
    let both = both.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(both.contains(read) && both.contains("leaves out zeros is faster"), "{both}");
    let plain = gpuio(dir, "show pattern.json --format csv").exits(0).out;
    assert!(!plain.contains("content: "), "{plain}");
    let compared = gpuio(dir, "compare pattern.json zero.json").exits(2);
    let text = compared.out + &compared.err;
    assert!(text.contains("data that repeats") && text.contains("as zeros do"), "{text}");
}

/// A copy of the better run in place of the other leaves one run, which is said on top.
#[test]
fn a_copy_of_a_run_in_place_of_another_is_said_on_top() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --runtime 30ms --vary path=host --repeats 2 -o s";
    gpuio(dir.path(), line).exits(0);
    let run = |nth: u32| dir.path().join(format!("s/point-0001-run-00{nth}.json"));
    std::fs::copy(run(1), run(2)).unwrap();
    let page = gpuio(dir.path(), "report s --format markdown").exits(0).out;
    let (top, table) = (page.find("Not all runs that were made"), page.find("\n| "));
    assert!(top.is_some() && top < table && page.contains("(one run)"), "{page}");
    assert!(page.contains("-002.json: left out of all figures: Another record"), "{page}");
    bench(dir.path(), &format!("{LOAD} -o o.json")).exits(0);
    let compared = gpuio(dir.path(), "compare o.json s --despite all");
    assert!(compared.out.starts_with("Not all runs that were made are in s: "), "{compared:?}");
}
