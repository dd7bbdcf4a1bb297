//! `gpuio workload`: training feeds on real files, with the software GPU.

use std::os::unix::fs::FileExt;
use std::path::Path;

use gpuio_job::workload::feed::Draws;
use gpuio_record::FeedPlan;
use serde_json::{Value, json};

use crate::tool::{Ran, command, csv_row, file, finish, gpuio, scratch, words};

fn run(dir: &Path, line: &str) -> Ran {
    let mut gpuio = command(dir);
    gpuio.env("GPUIO_SOFT_GPUS", "2").arg("workload");
    finish(gpuio.args(words(line)))
}

/// Twelve files of about 200 kB, in batches of three, for two accelerators.
const FEED: &str = "[mine]\nfiles=12\nsample_size=200000+-50000\nbatch_samples=3\nepochs=3\n\
                    readers=2\nprefetch=2\ncompute_time=2ms\nverify=inline\ndirectory=d\n\
                    file_prefix=s\n";

/// The text in one line: it is wrapped at the width of the page.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Checks the entries that every feed that came to its end has in its record.
#[track_caller]
fn is_exact(record: &Value) {
    let (plan, job) = (&record["plan"]["jobs"][0], &record["jobs"][0]);
    let (feed, found) = (&plan["feed"], &job["feed"]);
    let samples = number(&feed["files"]) * number(&feed["samples_per_file"]);
    let epochs = found["epochs"].as_array().unwrap();
    assert_eq!(epochs.len() as u64, number(&feed["epochs"]), "{found:#}");
    for epoch in epochs {
        let counts = ["once", "never", "repeated"].map(|name| number(&epoch[name]));
        assert_eq!(counts, [samples, 0, 0], "{epoch:#}");
    }
    assert_eq!(found["complete"], true);
    assert_eq!(number(&found["samples"]), samples * epochs.len() as u64);
    let read: u64 = epochs.iter().map(|epoch| number(&epoch["read_bytes"])).sum();
    assert_eq!(number(&job["read"]["bytes"]), read, "{job:#}");
    let verify = &job["verify"];
    assert_eq!((number(&verify["timed_bytes"]), number(&verify["bad_blocks"])), (read, 0));
}

#[test]
fn a_feed_reads_every_sample_once_an_epoch() {
    let dir = scratch();
    file(dir.path(), "mine.ini", FEED);
    for more in [
        "--gpu software:0,1 --path staged",
        "--gpu software:0,1 --path gather --bs 64k --compute sleep",
        "--gpu software:0 --path mapped --compute none",
        "--gpu software:0 --path library --accelerators 2 --compute kernel:50%",
        "--gpu none --path host --engine psync --buffered",
    ] {
        let record = run(dir.path(), &format!("mine.ini {more} --format json")).exits(0).json();
        is_exact(&record);
        let (job, found) = (&record["jobs"][0], &record["jobs"][0]["feed"]);
        assert_eq!(number(&found["steps"]), 12, "{more}");
        let lengths = record["plan"]["jobs"][0]["targets"].as_array().unwrap();
        let all: u64 = lengths.iter().map(|target| number(&target["length_bytes"])).sum();
        assert_eq!(number(&job["read"]["bytes"]), 3 * all, "{more}");
        let accelerators = found["accelerators"].as_array().unwrap();
        assert!(
            accelerators.iter().all(|one| number(&one["steps"]) == 12 / accelerators.len() as u64)
        );
        let known = found["utilisation_percent"].as_f64();
        match more.contains("none --path host") || !more.contains("compute none") {
            true if accelerators.len() == 1 => assert!(known.unwrap() > 0.0, "{found:#}"),
            // Two steps an epoch each are first and last, and none has nothing to compare.
            _ => assert_eq!(known, None, "{found:#}"),
        }
    }
    // The files are found again, and no other run of the same workload makes them anew.
    let again = run(dir.path(), "mine.ini --gpu none --seed 2 --format json").exits(0).json();
    assert_eq!(number(&again["setup"]["laid_out_bytes"]), 0);
}

/// 40 reads for each of the 4 row groups, and of 200 columns no byte more.
#[test]
fn columns_are_read_one_by_one() {
    let dir = scratch();
    let small = "dlrm-b200 --gpu software --directory d --scale 0.001 --set samples_per_file=24576 \
                 --epochs 2 --compute none --format json";
    let record = run(dir.path(), small).exits(0).json();
    is_exact(&record);
    let read = &record["jobs"][0]["read"];
    assert_eq!((number(&read["ios"]), number(&read["bytes"])), (320, 8 * 160 * 6144));
}

/// A reader that may be one batch ahead can't have read more than two steps before the first is
/// over, so that all of it takes as long as the steps do.
#[test]
fn readers_wait_for_accelerators_and_accelerators_for_readers() {
    let dir = scratch();
    file(dir.path(), "mine.ini", FEED);
    let paced = "mine.ini --gpu software:0 --readers 1 --prefetch 1 --compute sleep \
                 --compute-time 20ms --format json";
    let record = run(dir.path(), paced).exits(0).json();
    is_exact(&record);
    let job = &record["jobs"][0];
    assert!(number(&job["feed"]["span_ns"]) >= 12 * 20_000_000, "{job:#}");
    assert!(number(&job["last_done_ns"]) >= 10 * 20_000_000, "read ahead: {job:#}");
    // Each I/O takes 30 ms, and a step 1 ms.
    let slow = "mine.ini --gpu none --path host --engine psync --readers 1 --compute-time 1ms \
                --set inject=delay=30ms@100% --format json";
    let record = run(dir.path(), slow).exits(0).json();
    let found = &record["jobs"][0]["feed"];
    assert!(number(&found["stall_ns"]) >= 11 * 80_000_000, "{found:#}");
    assert!(found["utilisation_percent"].as_f64().unwrap() < 5.0, "{found:#}");
}

/// Any utilisation will do, or nearly all of it: what holds is decided by the number of steps, and
/// by reads that take longer than a step.
#[test]
fn the_largest_number_of_accelerators_is_searched() {
    let dir = scratch();
    file(dir.path(), "mine.ini", FEED);
    let line = "mine.ini --gpu none --path host --engine psync --accelerators auto --epochs 1 \
                --set files=48 --compute-time 2ms --set inject=delay=10ms@100% --readers 1";
    let ran = run(dir.path(), &format!("{line} --set utilisation=1 --format json")).exits(0);
    let record = ran.json();
    is_exact(&record);
    // 16 batches are two steps for some of six accelerators: their utilisation is unknown.
    assert_eq!(number(&record["plan"]["jobs"][0]["feed"]["accelerators"]), 5, "{}", ran.err);
    let said = ran.prints(&["accelerators 1: utilisation", "are 5, and of 6 it is unknown: "]).err;
    assert!(said.contains("fewer than 3 steps"), "{said}");
    // The answer and all tries are in the record, whose run is one of them.
    let search = &record["jobs"][0]["feed"]["search"];
    let (_, answer) = said.split_once("result: ").unwrap();
    assert_eq!(search["answer"].as_str(), answer.lines().next(), "{search:#}");
    let tries = search["tries"].as_array().unwrap();
    let tried = said.lines().filter(|line| line.starts_with("accelerators "));
    assert_eq!(tries.len(), tried.count(), "{search:#}");
    assert!(tries.iter().any(|one| one["accelerators"] == 5 && one["verdict"] == "1 % kept"));
    let none = run(dir.path(), &format!("{line} --set utilisation=99")).exits(0);
    // Where other programs use the machine, it is not even that.
    let said =
        none.prints(&["accelerators 1: utilisation", "result: ", " 1 accelerator ke", " 99 %"]).err;
    assert!(!said.contains("accelerators 2"), "{said}");
    // All of it is read ahead: the record says so, and the search announces no number.
    let ahead = format!("{line} --set utilisation=1").replace("files=48", "files=6");
    let ran = run(dir.path(), &ahead).exits(0);
    let why = "unknown: all batches of an accelerator fit into the 2 that are read ahead (use more";
    let words = format!("whether 1 accelerator keeps 1 % is {why}");
    assert!(ran.err.contains(&words) && flat(&ran.out).contains(why), "{} {}", ran.err, ran.out);
    assert!(!ran.err.contains("accelerators 2"), "{}", ran.err);
    let none = "mine.ini --gpu none --accelerators auto --compute none";
    run(dir.path(), none).exits(2).prints(&["no utilisation to keep"]);
    run(dir.path(), &format!("{line} --serve 1")).exits(2).prints(&["--serve", "no effect"]);
    // All tries have the data that was scaled once.
    let large = line.replace("files=48", "files=100000").replace("delay=10ms", "delay=1ms");
    let ran = run(dir.path(), &format!("{large} --try --set utilisation=10")).exits(0);
    let said = ran.prints(&["note: --try: data ", "; the same data for all tries", "result: "]).err;
    assert_eq!(said.matches("--try: ").count(), 1, "{said}");
}

/// A whole file a sample, by batch size: the sweep that `gpuio sweep` runs, with a row for each.
#[test]
fn several_values_of_a_key_are_a_row_each() {
    let dir = scratch();
    let line = "dali-inference --gpu software --directory d --scale 0.008 --set sample_size=70000 \
                --batch 1..4*3 --compute sleep --compute-time 1ms --sample-compute-time 100us";
    let ran = run(dir.path(), &format!("{line} --repeats 1 -o f")).exits(0);
    let rows: Vec<Vec<&str>> =
        ran.out.lines().take(3).map(|line| line.split_whitespace().collect()).collect();
    assert!(ran.out.contains("samples/s") && ran.out.contains("stalled"), "{}", ran.out);
    assert_eq!((rows[1][0], rows[2][0]), ("1", "3"), "{}", ran.out);
    for (batch, nth) in [(1, 1), (3, 2)] {
        let text =
            std::fs::read_to_string(dir.path().join(format!("f/point-000{nth}-run-001.json")));
        let record: Value = serde_json::from_str(&text.unwrap()).unwrap();
        is_exact(&record);
        let feed = &record["plan"]["jobs"][0]["feed"];
        assert_eq!(number(&feed["files"]), 8);
        assert_eq!(number(&feed["compute_ns"]), 1_000_000 + batch * 100_000);
        assert_eq!(number(&record["jobs"][0]["feed"]["steps"]), 8_u64.div_ceil(batch));
        // A sample is a whole file: 70,000 bytes are 18 blocks of 4096.
        assert_eq!(number(&record["jobs"][0]["read"]["bytes"]), 8 * 18 * 4096);
    }
    // All waits of two steps may be those for first batches: they say nothing of storage.
    let few = line.replace("1..4*3", "4,8");
    let ran = run(dir.path(), &format!("{few} --repeats 1 -o g")).exits(0);
    for row in ran.out.lines().skip(1).take(2) {
        let end = row.split_whitespace().rev().take(3);
        assert!(end.eq(["unknown", "-", "-"]), "{}", ran.out);
    }
    let show = words("show g/point-0001-run-001.json");
    let text = flat(&finish(command(dir.path()).args(show)).exits(0).out);
    assert!(text.contains("stalled for -, a step for") && !text.contains("for 0 ns"), "{text}");
    let plan = run(dir.path(), &format!("{line} --vary path=gather,staged --dry-run")).exits(0).out;
    assert!(plan.contains("4 points, 3 runs each"), "{plan}");
    let plan =
        run(dir.path(), &format!("{line} --path gather --path staged --dry-run")).exits(0).out;
    let point = |line: &str| line.split_whitespace().skip(1).eq(["3", "gather"]);
    assert!(plan.contains("batch_samples") && plan.lines().any(point), "{plan}");
    let csv = run(dir.path(), &format!("{line} --repeats 1 -o f --format csv")).exits(0).out;
    assert!(csv.starts_with("batch_samples,bytes_per_s,") && csv.contains("\n3,"), "{csv}");
    let plan = run(dir.path(), &format!("{line} -o f --format plan")).exits(2);
    plan.prints(&["formats are text, json, markdown"]);
    run(dir.path(), "dali-inference --batch 3 --repeats 2").exits(2).prints(&["--repeats"]);
    run(dir.path(), "dali-inference --batch 4..1").exits(2).prints(&["4..1"]);
    run(dir.path(), "list --vary a=b").exits(2).prints(&["--vary", "no effect"]);
}

/// Two ranks of 64 save twice from GPU memory and restore twice: every byte is written, flushed,
/// read back and verified, and every output says which part of the whole it is.
#[test]
fn a_checkpoint_is_saved_and_restored() {
    let dir = scratch();
    let line = "checkpoint-llama3-70b --gpu software:0,1 --directory d --scale 0.0001 --ranks 2 \
                --set start_delay=1ms --set repeat=2 --no-watch --details";
    let ran = run(dir.path(), &format!("{line} -o r.json")).exits(0);
    for words in ["scale 0.0001: 1.36 MiB of 13.3 GiB for each thread; 2 of 64 threads", "2 times:"]
    {
        assert!(flat(&ran.out).contains(words), "no {words:?} in {}", ran.out);
    }
    let record: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    let jobs = record["jobs"].as_array().unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["save", "save#2", "restore", "restore#2"]);
    let size = number(&record["plan"]["jobs"][0]["size_bytes"]);
    for (nth, job) in jobs.iter().enumerate() {
        let (read, written) = (number(&job["read"]["bytes"]), number(&job["write"]["bytes"]));
        let flushes = job["flushes"]["calls"].as_u64();
        match nth < 2 {
            true => assert_eq!((read, written, flushes), (0, 2 * size, Some(2)), "{job:#}"),
            false => assert_eq!((read, written, flushes), (2 * size, 0, None), "{job:#}"),
        }
        let verify = &job["verify"];
        assert_eq!(number(&verify["bad_blocks"]), 0, "{job:#}");
        let checked = number(&verify["timed_bytes"]) + number(&verify["pass_bytes"]);
        assert_eq!(checked, 2 * size, "{verify:#}");
    }
    let mut show = command(dir.path());
    let csv = finish(show.args(words("show r.json --format csv"))).exits(0).out;
    assert!(csv.contains("part_scale") && csv.contains("0.0001,64"), "{csv}");
    // The share is above the figures, in all that people read.
    let text = gpuio(dir.path(), "show r.json").exits(0).out;
    let part = text.find("part of a larger load:\n  soft:save, soft:restore").unwrap();
    assert!(part < text.find("throughput").unwrap(), "{text}");
    for format in ["markdown", "html"] {
        let line = format!("report r.json --format {format} -o -");
        let page = gpuio(dir.path(), &line).exits(0).out;
        let part = page.find("A part of a larger load. save: scale 0.0001: ").unwrap();
        assert!(part < page.find("throughput").unwrap(), "{page}");
    }
    let rules = flat(&text);
    for words in [
        "save+restore",
        "MLPerf rule broken: all 64 ranks (2)",
        "MLPerf rule broken: the whole checkpoint of a rank (scale 0.0001: 1.36 MiB of 13.3 GiB)",
        "MLPerf rule broken: 10 are written, then 10 read (2 written, 2 read)",
        "results on another file system (not checked)",
        "rules kept: fsync at the end of each write; more than 3 times the memory is written, or",
    ] {
        assert!(rules.contains(words), "no {words:?} in {text}");
    }
    run(dir.path(), "checkpoint-llama3-8b --gpu software --ranks 9").exits(2).prints(&["--ranks"]);
    let feed = "checkpoint-llama3-8b --gpu software --epochs 2";
    run(dir.path(), feed).exits(2).prints(&["--epochs", "of a training feed"]);
}

#[test]
fn a_staged_checkpoint_leaves_its_files_and_no_pages() {
    let dir = scratch();
    let d = dir.path().join("d");
    let line = format!(
        "checkpoint-llama3-8b --stage memory --gpu software --directory {} --scale 0.0001 \
         --ranks 2 --set start_delay=1ms --set repeat=1 --set beside=off --format json",
        d.display()
    );
    let record = run(dir.path(), &line).exits(0).json();
    let jobs = record["jobs"].as_array().unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["save-stall", "save-drain", "restore"]);
    let size = 2 * number(&record["plan"]["jobs"][0]["size_bytes"]);
    for job in jobs {
        let moved = number(&job["read"]["bytes"]) + number(&job["write"]["bytes"]);
        assert_eq!((moved, number(&job["verify"]["bad_blocks"])), (size, 0), "{job:#}");
    }
    let file = record["plan"]["jobs"][0]["targets"][0]["path"].as_str().unwrap();
    assert!(file.starts_with("/dev/shm/gpuio-stage-") && !Path::new(file).exists(), "{file}");
    assert!(d.join("checkpoint.0").exists());
    std::fs::write(dir.path().join("r.json"), record.to_string()).unwrap();
    let lines = [
        ("show r.json", " "),
        ("report r.json --format markdown -o -", ": "),
        ("report r.json --format html -o -", ": "),
    ];
    for (line, between) in lines {
        let text = flat(&gpuio(dir.path(), line).exits(0).out);
        for (job, words) in [
            ("save-stall", "training stops for "),
            ("save-drain", "a save is in the files after "),
            ("restore", "a restart waits for "),
        ] {
            let says = |words| text.contains(&format!("{job}{between}{words}"));
            let unknown = says("unknown: ") || says("how long ");
            assert!(says(words) || unknown, "{line}: no answer of {job} in {text}");
        }
    }
    // The rule is about the files, and new files in memory are not from storage.
    let text = flat(&gpuio(dir.path(), "show r.json").exits(0).out);
    assert!(text.contains("rules kept: fsync at the end of each write"), "{text}");
    assert!(text.contains("not of storage."), "{text}");
    assert!(!text.contains("what storage delivered is in the"), "{text}");
    // All that prints figures says which part of the whole it is.
    let part = "larger load, save-stall, save-drain, restore: scale 0.0001: ";
    for (format, words) in [("summary", "part: of a "), ("gdsio", "# part: of a ")] {
        let line = format!("show r.json --format {format}");
        let text = flat(&gpuio(dir.path(), &line).exits(0).out);
        assert!(text.contains(&format!("{words}{part}")), "{text}");
    }

    // The name can be guessed, and another user may have taken it.
    let taken = Path::new(file).parent().unwrap();
    let aim = dir.path().join("aim");
    std::fs::create_dir(&aim).unwrap();
    std::os::unix::fs::symlink(&aim, taken).unwrap();
    let said = run(dir.path(), &line).exits(1).err;
    std::fs::remove_file(taken).unwrap();
    assert!(said.contains("must be a directory of this user, with mode 700"), "{said}");
    assert_eq!(std::fs::read_dir(aim).unwrap().count(), 0);
}

/// A file of the format: F32 tensors of these lengths in this order, with bytes of their own.
fn tensors(at: &Path, lengths: &[usize]) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut data = Vec::new();
    for (nth, length) in lengths.iter().enumerate() {
        let begin = data.len();
        data.extend((0..length * 4).map(|byte| (byte * 7 + nth * 31).to_le_bytes()[0]));
        entries.push(format!(
            r#""t{nth}":{{"dtype":"F32","shape":[{length}],"data_offsets":[{begin},{}]}}"#,
            data.len()
        ));
    }
    let header = format!("{{{}}}", entries.join(","));
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    std::fs::write(at, &file).unwrap();
    file
}

/// Each byte of the user's files ends in the memory of one of two GPUs, once as whole files and
/// once tensor by tensor, and no byte of them is changed.
#[test]
fn a_model_is_loaded_from_the_users_files() {
    let dir = scratch();
    std::fs::create_dir(dir.path().join("m")).unwrap();
    let (one, two) = (dir.path().join("m/a.safetensors"), dir.path().join("m/b.safetensors"));
    let files = [tensors(&one, &[100_000, 3, 0, 50_001]), tensors(&two, &[70_000, 1])];
    let line = "safetensors m --gpu software:0,1 --bs 64k --threads 2 --no-watch";
    for path in ["staged", "gather,cached,mapped,host", "library,gds"] {
        let ran = run(dir.path(), &format!("{line} --path {path} -o r.json --force")).exits(0);
        let ready = "5 tensors of 2 files and 1 without bytes, ";
        assert!(flat(&ran.out).contains(ready), "{}", ran.out);
        assert!(ran.out.contains("in memory after"), "{}", ran.out);
        let record: Value =
            serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
        for (plan, job) in record["plan"]["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .zip(record["jobs"].as_array().unwrap())
        {
            let whole = plan["ranges"]["kind"] == "files";
            let data = (100_000 + 3 + 50_001 + 70_000 + 1) * 4;
            let all: usize = files.iter().map(Vec::len).sum();
            let wanted = if whole { all } else { data } as u64;
            assert_eq!(number(&job["read"]["bytes"]), wanted, "{}", plan["name"]);
            assert_eq!(number(&plan["ranges"]["bytes"]), wanted);
            let verify = &job["verify"];
            assert_eq!(number(&verify["pass_bytes"]), wanted, "{verify:#}");
            assert_eq!(number(&verify["bad_blocks"]), 0, "{verify:#}");
        }
    }
    assert_eq!([std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap()], files);
    let names: Vec<_> = std::fs::read_dir(dir.path().join("m")).unwrap().collect();
    assert_eq!(names.len(), 2, "nothing was made");
    run(dir.path(), "safetensors").exits(2).prints(&["name their directory", "*.safetensors"]);
    run(dir.path(), "safetensors .").exits(2).prints(&["it has no files *.safetensors"]);
    run(dir.path(), "vector-search m").exits(2).prints(&["'m'", "no files of yours"]);
    let feed = "[a]\nfilename=*.safetensors\nbatch_samples=2\n";
    std::fs::write(dir.path().join("feed.ini"), feed).unwrap();
    let plain = feed.replace("*.safetensors", "samples.bin");
    std::fs::write(dir.path().join("plain.ini"), plain).unwrap();
    for line in ["feed.ini", "feed.ini m", "plain.ini"] {
        run(dir.path(), line).exits(2).prints(&["reads none of yours", "gpuio workload own-files"]);
    }
    std::fs::write(&two, b"\x04\0\0\0\0\0\0\0{\"a\"").unwrap();
    run(dir.path(), &format!("{line} --dry-run")).exits(2).prints(&["b.safetensors: offset 11: "]);
}

/// The blocks of the preset as walks: the bytes of each decide on the GPU which is next.
#[test]
fn a_search_of_vectors_walks_from_block_to_block() {
    let dir = scratch();
    let line = "vector-search --chain --gpu software --directory d --ranks 2 --scale 0.0001 \
                --runtime 200ms";
    if let Err(why) = gpuio_io::path::rings_available() {
        let said = format!("path initiated can't run here: {why}");
        run(dir.path(), line).exits(3).prints(&[&said]);
        return eprintln!("SKIPPED: {why}");
    }
    let plan = run(dir.path(), &format!("{line} --dry-run")).exits(0).out;
    assert!(plan.contains("\npath = initiated\n") && plan.contains("\nchain = 1\n"), "{plan}");
    let record = run(dir.path(), &format!("{line} --rings 3 --format json")).exits(0).json();
    let job = &record["jobs"][0];
    let blocks = number(&job["read"]["ios"]);
    assert!(blocks > 0, "{job:#}");
    let found = &job["initiated"];
    assert_eq!((number(&found["rings"]), number(&found["entries"])), (6, blocks));
    let verify = &job["verify"];
    let checked = ["timed_blocks", "bad_blocks"].map(|name| number(&verify[name]));
    assert_eq!(checked, [blocks, 0], "{verify:#}");
    let not = run(dir.path(), "vector-search --chain --gpu software --path gather");
    not.exits(2).prints(&["use path=initiated"]);
}

/// A directory that holds the same weights twice is read once, and a note says what is left out.
/// A model of one block needs no flag.
#[test]
fn the_files_of_a_model_are_found_in_its_directory() {
    let dir = scratch();
    let model = dir.path().join("m");
    std::fs::create_dir(&model).unwrap();
    let made = |name: &str| drop(tensors(&model.join(name), &[1000, 24]));
    let plan =
        |what: &str| run(dir.path(), &format!("safetensors {what} --gpu software --dry-run"));
    let reads = |what: &str, names: &[&str], left: &[&str]| {
        let ran = plan(what).exits(0);
        let said = flat(&(ran.out.clone() + &ran.err));
        for name in names {
            assert!(ran.out.contains(&format!("m/{name}")), "{name}: {}", ran.out);
        }
        for name in left {
            assert!(!ran.out.contains(&format!("m/{name}:")), "{name}: {}", ran.out);
            assert!(said.contains("are not read, since") && said.contains(name), "{said}");
        }
        assert_eq!(said.contains("are not read"), !left.is_empty(), "{said}");
    };
    made("model.safetensors");
    reads("m", &["model.safetensors"], &[]);
    let ran = run(dir.path(), "safetensors m --gpu software --no-watch -o r.json").exits(0);
    assert!(flat(&ran.out).contains("2 tensors of 1 file"), "{}", ran.out);
    made("consolidated.safetensors");
    made("model.fp16.safetensors");
    reads("m", &["model.safetensors"], &["consolidated.safetensors", "model.fp16.safetensors"]);
    reads("m/consolidated.safetensors", &["consolidated.safetensors"], &[]);
    let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    shards.iter().for_each(|name| made(name));
    let index = |name: &str, [one, two]: [&str; 2]| {
        let text =
            format!("{{\"weight_map\":{{\"a\":\"{one}\",\"b\":\"{two}\",\"c\":\"{one}\"}}}}");
        file(&model, name, &text);
    };
    index("model.safetensors.index.json", shards);
    index("consolidated.safetensors.index.json", ["consolidated.safetensors"; 2]);
    reads("m", &shards, &["consolidated.safetensors", "model.safetensors"]);
    std::fs::remove_file(model.join(shards[1])).unwrap();
    plan("m").exits(2).prints(&["index.json: of the 2 files that it names 1 are not", shards[1]]);
    std::os::unix::fs::symlink("gone/blob", model.join(shards[1])).unwrap();
    plan("m").exits(2).prints(&[shards[1], "it is a link to gone/blob, which is not there"]);
    std::fs::remove_file(model.join(shards[1])).unwrap();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n";
    file(&model, shards[1], pointer);
    plan("m").exits(2).prints(&[shards[1], "a pointer of Git LFS", "git lfs pull"]);
    file(&model, "model.safetensors.index.json", "{}");
    plan("m").exits(2).prints(&["model.safetensors.index.json", "names no files"]);
    plan("m/model.safetensors.index.json").exits(2).prints(&["it is no file *.safetensors"]);
    run(dir.path(), "kv-cache-llama3-8b --ranks 2 --gpu software --dry-run").exits(2).prints(&[
        "--ranks",
        "this workload has no ranks",
        "--readers",
    ]);
}

/// Snapshots are written while accelerators compute, no more than two behind, and read from the
/// last to the first; each once, a quarter of their size, and verified in GPU memory.
#[test]
fn snapshots_are_written_forward_and_read_in_reverse() {
    let dir = scratch();
    let line = "seismic --gpu software:0,1 --directory d --snapshots 13 --ratio 4 --compute sleep \
                --set sample_size=1000000 --compute-time 5ms --no-watch --format json";
    let record = run(dir.path(), line).exits(0).json();
    let jobs = record["jobs"].as_array().unwrap();
    for (nth, job) in jobs.iter().enumerate() {
        let feed = &job["feed"];
        let epochs = feed["epochs"].as_array().unwrap();
        let counts = ["once", "never", "repeated"].map(|name| number(&epochs[0][name]));
        assert_eq!((counts, epochs.len()), ([13, 0, 0], 1), "{feed:#}");
        assert_eq!((number(&feed["steps"]), &feed["complete"]), (13, &Value::Bool(true)));
        // 250,000 bytes are 62 blocks of 4096.
        let bytes = [&job["read"], &job["write"]].map(|side| number(&side["bytes"]));
        let all = 13 * 62 * 4096;
        assert_eq!(bytes, if nth == 0 { [0, all] } else { [all, 0] }, "{job:#}");
        let verify = &job["verify"];
        let checked = if nth == 0 { &verify["pass_bytes"] } else { &verify["timed_bytes"] };
        assert_eq!((number(checked), number(&verify["bad_blocks"])), (all, 0), "{verify:#}");
        assert!(number(&feed["span_ns"]) >= 7 * 5_000_000, "{feed:#}");
        assert_eq!(feed["rules"].as_array().unwrap().len(), 0);
    }
    assert_eq!(jobs.len(), 2);
    // Each write takes 30 ms, and a step 1 ms: the accelerator waits for the rest.
    let slow = "seismic --gpu none --path host --engine psync --directory s --snapshots 9 \
                --set sample_size=4096 --compute-time 1ms --set inject=delay=30ms@100% --no-watch";
    let ran = run(dir.path(), &format!("{slow} --format json")).exits(0);
    let forward = &ran.json()["jobs"][0]["feed"];
    assert!(number(&forward["stall_ns"]) >= 9 * 28_000_000, "{forward:#}");
    let text = flat(&run(dir.path(), &format!("{slow} -v")).exits(0).out);
    let words = "written by 1 thread with 2 batches behind each";
    assert!(text.contains(words) && !text.contains("hidden"), "no {words:?} in {text}");
    let both = "seismic --gpu none --path host --directory b --ratio 1,4 --dry-run";
    let plan = run(dir.path(), both).exits(0).out;
    let jobs: Vec<&str> = plan.lines().filter(|line| line.starts_with('[')).collect();
    let phases =
        ["[forward-ratio-1]", "[backward-ratio-1]", "[forward-ratio-4]", "[backward-ratio-4]"];
    assert_eq!(jobs, phases, "{plan}");
    assert_eq!(plan.matches("stonewall").count(), 3, "{plan}");
}

/// Contexts of users are read, verified on arrival, while those of others are written once and read
/// back; the times are held against the level, where there are enough of them.
#[test]
fn caches_are_read_while_others_are_written() {
    let dir = scratch();
    let line = "kv-cache --model llama3-8b --gpu software --directory d --users 12 --epochs 20 \
                --set sample_size=50000 --bs 16k --readers 3 --no-watch";
    let own = "--slo 1ns/5m -o r.json";
    // A write is each once: epochs are decode's.
    run(dir.path(), &format!("{line} {own}")).exits(2).prints(&["each once"]);
    let shown = run(dir.path(), "show kv-cache-llama3-8b").exits(0).out;
    file(dir.path(), "kv.ini", &shown.replace("epochs=1000", "epochs=20"));
    let line = line.replace("kv-cache --model llama3-8b", "kv.ini").replace("--epochs 20", "-v");
    let ran = run(dir.path(), &format!("{line} {own}")).exits(0);
    let record: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    let jobs = record["jobs"].as_array().unwrap();
    let each = 12 * 53_248;
    for (job, epochs) in jobs.iter().zip([20, 1]) {
        let found = job["feed"]["epochs"].as_array().unwrap();
        assert_eq!(found.len(), epochs);
        for epoch in found {
            let counts = ["once", "never", "repeated"].map(|name| number(&epoch[name]));
            assert_eq!(counts, [12, 0, 0], "{epoch:#}");
        }
        let moved = number(&job["read"]["bytes"]) + number(&job["write"]["bytes"]);
        let verify = &job["verify"];
        let checked = number(&verify["timed_bytes"]) + number(&verify["pass_bytes"]);
        assert_eq!([moved, checked], [epochs as u64 * each; 2], "{job:#}");
        assert_eq!(number(&verify["bad_blocks"]), 0);
    }
    // The epoch of writes ends with the last of them, and not where that was handed over.
    let (span, last) = (&jobs[1]["feed"]["epochs"][0]["span_ns"], &jobs[1]["last_done_ns"]);
    assert!(number(span) >= number(last), "{span} {last}");
    let text = flat(&ran.out);
    for words in [
        "key-value cache:",
        "240 contexts of ",
        "scale 1: 12 of 12 users, in order shuffle; of the 12.2 MiB that were read at most 624 KiB \
         differ: a cache of that size serves the rest",
        "service level: 95 % within 1 ns (it took ",
        "service level: 95 % within 1 ns (12 contexts written, each in ",
        "; 99 % within 300 s (too few: 240 contexts read; each took no longer)",
        "20 rounds of 12 users, which overlap: 240 contexts read once a round, 0 never, 0 ",
        "1 round of 12 users: 12 contexts written once a round, 0 never, 0 repeatedly; these con",
        "texts are 624 KiB",
        "MLPerf rule broken: the parameters of a workload of MLPerf's (sample_size=50000 (--set))",
        "MLPerf rule broken: contexts are read and written for 300 s (",
        "MLPerf rule broken: each context is flushed as it is written (no flush)",
        "MLPerf rule unknown: results on another file system than the cache (not checked)",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let of_training = ["training feed", "samples/s", "utilisation", "epoch 1"];
    assert_eq!(of_training.map(|word| text.contains(word)), [false; 4], "{text}");
    run(dir.path(), "kv-cache --model gpt")
        .exits(2)
        .prints(&["--model gpt: 'kv-cache' has no such model; use llama3-8b, "]);
    run(dir.path(), "kv-cache --try").exits(2).prints(&["add --model llama3-8b|", "deepseek-v3, "]);
    run(dir.path(), "seismic --model gpt").exits(2).prints(&["--model gpt", "leave it out"]);
    run(dir.path(), "list --model x").exits(2).prints(&["--model", "no effect"]);
    let bad = "kv-cache --model llama3-8b --gpu software --slo 2s/1s --dry-run";
    run(dir.path(), bad).exits(2).prints(&["--slo", "shorter time first"]);
}

/// The hits, misses and evictions of a list in the order of use for a sequence of samples.
fn by_list(sequence: &[u64], places: usize) -> [u64; 3] {
    let mut list: Vec<u64> = Vec::new();
    let [mut hits, mut misses, mut evictions] = [0; 3];
    for unit in sequence {
        match list.iter().position(|one| one == unit) {
            Some(at) => {
                list.remove(at);
                hits += 1;
            }
            None => {
                misses += 1;
                if list.len() == places {
                    list.remove(0);
                    evictions += 1;
                }
            }
        }
        list.push(*unit);
    }
    [hits, misses, evictions]
}

/// One reader with one block in flight reads contexts one after another, so that a list says which
/// of them are in the tier. Its bytes are none of the job's reads, and are verified like these.
#[test]
fn a_tier_is_read_by_what_a_list_says() {
    let dir = scratch();
    let shown = run(dir.path(), "show kv-cache-llama3-8b-cpu").exits(0).out;
    file(dir.path(), "kv.ini", &shown.replace("epochs=1000", "epochs=5"));
    let line = "kv.ini --gpu software:0 --directory d --users 12 --set sample_size=50000 --bs 16k \
                --readers 1 --depth 1 --set cache_memory=213000 --no-watch --no-stats-page";
    // A flag is for both jobs, and nothing that is written is kept.
    run(dir.path(), line).exits(2).prints(&["cache_memory", "nothing is written back"]);
    let own =
        shown.replace("epochs=1000", "epochs=5").replace("cache_memory=4g", "cache_memory=213000");
    file(dir.path(), "kv.ini", &own);
    let line = line.replace("--set cache_memory=213000 ", "");
    for path in ["staged", "cached"] {
        let ran = run(dir.path(), &format!("{line} --path {path} --force -v -o r.json")).exits(0);
        let record: Value =
            serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
        let (plan, job) = (&record["plan"]["jobs"][0], &record["jobs"][0]);
        let feed: FeedPlan = serde_json::from_value(plan["feed"].clone()).unwrap();
        let draws = Draws::of(&feed, number(&plan["seed"])).unwrap();
        let at = |epoch| (0..12).map(move |place| (epoch, place));
        let sequence: Vec<u64> =
            (0..5).flat_map(at).map(|(epoch, place)| draws.unit(epoch, place)).collect();
        let [hits, misses, evictions] = by_list(&sequence, 4);
        assert!(hits > 10 && evictions > 5, "{sequence:?}");
        let tier = &job["feed"]["tier"];
        let found = ["hits", "misses", "evictions", "not_kept"].map(|name| number(&tier[name]));
        assert_eq!(found, [hits, misses, evictions, 0], "{sequence:?}");
        let bytes = ["memory_bytes", "storage_bytes"].map(|name| number(&tier[name]));
        assert_eq!(bytes, [hits * 53_248, misses * 53_248]);
        assert_eq!(number(&job["read"]["bytes"]), bytes[1], "{job:#}");
        assert_eq!(number(&job["read"]["ios"]), misses * 4);
        assert_eq!(number(&job["file_leg"]["read_bytes"]), bytes[1]);
        let verify = &job["verify"];
        let checked = [&verify["timed_bytes"], &verify["bad_blocks"]].map(number);
        assert_eq!(checked, [60 * 53_248, 0], "{verify:#}");
        assert_eq!(number(&job["feed"]["batch_read"]["count"]), 60);
        let epochs = job["feed"]["epochs"].as_array().unwrap();
        for epoch in epochs {
            let counts = ["once", "never", "repeated"].map(|name| number(&epoch[name]));
            assert_eq!(counts, [12, 0, 0], "{epoch:#}");
        }
        assert_eq!((epochs.len(), &record["jobs"][1]["feed"]["tier"]), (5, &Value::Null));
        let text = flat(&ran.out);
        for words in [
            format!("for 4 contexts: {hits} hits and {misses} misses"),
            format!("{evictions} evicted by LRU, 0 not kept"),
            "5 rounds of 12 users, which overlap: 60 contexts read as often as drawn, 0 too \
             seldom, 0 too often; these contexts are 3.05 MiB; in the time of the rounds alone \
             the kernel counted "
                .to_owned(),
            "of the samples came from the tier in CPU memory (cache_memory)".to_owned(),
        ] {
            assert!(text.contains(&words), "no {words:?} in {text}");
        }
        let mut show = command(dir.path());
        let csv = finish(show.args(words("show r.json --format csv"))).exits(0).out;
        let row = csv_row(&csv);
        let cells = ["hits", "misses", "evictions", "bytes"]
            .map(|name| row[&format!("tier_{name}")].parse::<u64>().unwrap());
        assert_eq!(cells, [hits, misses, evictions, bytes[0]], "{csv}");
    }
}

/// Many readers share it, and read the same samples at the same time. A byte that was wrong as it
/// was read into the tier is found again whenever it comes from there.
#[test]
fn a_tier_is_shared_and_what_is_wrong_in_it_is_found() {
    let dir = scratch();
    file(
        dir.path(),
        "mine.ini",
        "[mine]\nfiles=12\nsample_size=200000+-50000\nsample_order=zipf:1.3\nbatch_samples=3\n\
         epochs=40\nreaders=3\ncompute=none\nverify=inline\ndirectory=d\nfile_prefix=s\n\
         cache_memory=2m\nbs=64k\n",
    );
    let line = "mine.ini --gpu software:0,1 --path staged --format json --no-stats-page";
    let record = run(dir.path(), line).exits(0).json();
    let job = &record["jobs"][0];
    let tier = &job["feed"]["tier"];
    let count = |name: &str| number(&tier[name]);
    assert_eq!(count("hits") + count("misses"), 12 * 40, "{tier:#}");
    assert!(count("hits") > 0 && count("evictions") > 0 && count("memory_bytes") > 0, "{tier:#}");
    let places = number(&record["plan"]["jobs"][0]["feed"]["tier"]["places"]);
    assert!(count("evictions") + count("not_kept") + places >= count("misses"), "{tier:#}");
    assert_eq!(number(&job["read"]["bytes"]), count("storage_bytes"));
    let epochs = job["feed"]["epochs"].as_array().unwrap();
    let read: u64 = epochs.iter().map(|epoch| number(&epoch["read_bytes"])).sum();
    assert_eq!(read, count("storage_bytes") + count("memory_bytes"));
    let verify = &job["verify"];
    assert_eq!((number(&verify["timed_bytes"]), number(&verify["bad_blocks"])), (read, 0));
    // The tier has all samples; one of them, the most often drawn, is wrong in a byte of its file.
    let feed: FeedPlan = serde_json::from_value(record["plan"]["jobs"][0]["feed"].clone()).unwrap();
    let draws = Draws::of(&feed, number(&record["plan"]["jobs"][0]["seed"])).unwrap();
    let mut times = [0_u64; 12];
    for counts in (0..40).map(|epoch| draws.counts(epoch)) {
        times.iter_mut().zip(counts).for_each(|(all, one)| *all += u64::from(one));
    }
    let (hottest, often) = times.into_iter().enumerate().max_by_key(|one| one.1).unwrap();
    let path = dir.path().join(format!("d/s.{hottest}"));
    let broken = std::fs::File::options().write(true).open(&path).unwrap();
    let time = path.metadata().unwrap().modified().unwrap();
    broken.write_all_at(b"wrong", 70_000).unwrap();
    // As it was left: a file that was changed since is made anew.
    broken.set_modified(time).unwrap();
    drop(broken);
    let one = "--gpu software:0 --readers 1 --depth 1 --set cache_memory=1g";
    let line = line.replace("--gpu software:0,1", one);
    let record = run(dir.path(), &line).exits(1).json();
    let (tier, verify) = (&record["jobs"][0]["feed"]["tier"], &record["jobs"][0]["verify"]);
    let drawn = times.iter().filter(|times| **times > 0).count() as u64;
    let found = ["hits", "misses", "evictions"].map(|name| number(&tier[name]));
    assert_eq!(found, [480 - drawn, drawn, 0], "{tier:#}");
    assert!(often > 40);
    assert_eq!(number(&verify["bad_blocks"]), often, "on hits as on the miss: {verify:#}");
}

#[test]
fn a_feed_that_fails_or_is_cut_short_says_so_and_ends() {
    let dir = scratch();
    file(dir.path(), "mine.ini", FEED);
    let broken = "mine.ini --gpu software:0 --set inject=eio=20%,seed=3 --format json";
    let record = run(dir.path(), broken).exits(1).json();
    let (job, found) = (&record["jobs"][0], &record["jobs"][0]["feed"]);
    assert!(number(&job["failed"]) > 0 && found["complete"] == true, "{job:#}");
    let epochs = found["epochs"].as_array().unwrap();
    let lost: u64 = epochs.iter().map(|epoch| number(&epoch["never"])).sum();
    assert!(lost > 0, "{found:#}");
    let long = FEED.replace("epochs=3", "epochs=1000").replace("time=2ms", "time=20ms");
    file(dir.path(), "long.ini", &long);
    let cut = "long.ini --gpu software:0 --runtime 300ms -o cut.json";
    let ran = run(dir.path(), cut).exits(0);
    assert!(flat(&ran.out).contains("ended before its last step"), "{}", ran.out);
    let record = serde_json::from_slice(&std::fs::read(dir.path().join("cut.json")).unwrap());
    let record: Value = record.unwrap();
    let feed = &record["jobs"][0]["feed"];
    let epochs = feed["epochs"].as_array().unwrap();
    let moved: Vec<u64> = epochs.iter().map(|epoch| number(&epoch["moved_bytes"])).collect();
    assert!(moved.iter().sum::<u64>() <= number(&record["jobs"][0]["read"]["bytes"]));
    // Readers are two batches of three files ahead at most.
    let of_epoch = |nth: usize| number(&epochs[nth]["read_bytes"]);
    let last = epochs.len() - 1;
    assert!(moved[last] + 12 * 250_000 >= of_epoch(last), "{feed:#}");
    let once = rule(feed, "every sample is read exactly once");
    assert_ne!(once["kept"], true, "{once:#}");
    assert!(once["found"].as_str().unwrap().contains(&format!(" {} never began", 999 - last)));
    // Contexts are handed over at once, and none is written in that time.
    let cut = "kv-cache --model llama3-8b --gpu software:0 --directory d --users 3 --runtime 30ms \
               --set sample_size=200000 --bs 4k --set inject=delay=400ms@100% --no-watch";
    let ran = run(dir.path(), cut).exits(0);
    for words in ["prefill 0 contexts of 195 KiB written in", "ended before its last context"] {
        assert!(flat(&ran.out).replace("[software GPU] ", "").contains(words), "{}", ran.out);
    }
    assert!(!ran.out.contains(", ;"), "{}", ran.out);
    let lost = cut.replace("delay=400ms@100%", "eio=100%").replace("30ms", "2s");
    run(dir.path(), &lost).exits(1).prints(&["job 'prefill': 3 contexts were never written"]);
    let storage = &rule(feed, "every epoch is read from storage")["kept"];
    assert!(storage.is_boolean() || epochs[0]["storage_read_bytes"].is_null(), "{feed:#}");
}

/// A rule of a feed by the begin of its words.
#[track_caller]
fn rule<'a>(feed: &'a Value, begin: &str) -> &'a Value {
    let rules = feed["rules"].as_array().unwrap();
    rules.iter().find(|rule| rule["rule"].as_str().unwrap().starts_with(begin)).unwrap()
}

/// A rule's outcome follows from the plan and the counts, and a utilisation from the times.
#[test]
fn a_changed_feed_is_found() {
    let dir = scratch();
    file(dir.path(), "mine.ini", FEED);
    let line = "mine.ini --gpu none --path host --compute sleep -o r.json -q";
    run(dir.path(), line).exits(0);
    let text = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    gpuio(dir.path(), "show r.json --check").exits(0);
    let rules = record["jobs"][0]["feed"]["rules"].as_array().unwrap();
    let steps = rules.iter().position(|one| one["rule"] == "at least 500 steps an epoch").unwrap();
    let place = format!("/jobs/0/feed/rules/{steps}");
    let first = "'the whole data set: scale 1: 12 of 12 files', kept, by its counts";
    for (places, value, of) in [
        (vec!["/jobs/0/feed/rules"], json!([]), format!("rules: none recorded, {first}")),
        (
            vec![&format!("{place}/kept")],
            json!(true),
            "an epoch: 4', kept, recorded, 'at least 500 steps an epoch: 4', not kept,".to_owned(),
        ),
        (
            vec!["/jobs/0/feed/utilisation_percent", "/jobs/0/feed/epochs/0/utilisation_percent"],
            json!(0.001),
            "utilisation in epoch 1: 0.0 % recorded".to_owned(),
        ),
        (
            vec!["/jobs/0/feed/epochs/0/span_ns"],
            json!(u64::MAX / 2),
            "time of its epochs, ns: ".to_owned(),
        ),
    ] {
        let mut changed = record.clone();
        for place in &places {
            *changed.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value.clone();
        }
        file(dir.path(), "changed.json", &changed.to_string());
        let found = gpuio(dir.path(), "show changed.json --check").exits(1).out;
        assert!(found.contains(&of), "{places:?}:\n{found}");
    }
}

/// A job's epochs have all that it moved, whatever runs beside it; and what the process read from
/// storage is only said to be the job's where no other reads.
#[test]
fn the_bytes_of_an_epoch_are_its_jobs() {
    let dir = scratch();
    let global = "[global]\nfiles=8\nsample_size=262144\nbatch_samples=1\nreaders=1\nprefetch=1\n\
                  depth=1\nengine=psync\npath=host\ngpu=none\ncompute=sleep\ncompute_time=4ms\n\
                  directory=d\nverify=off\n[reads]\nrw=read\nepochs=2\nfile_prefix=r\n";
    let both = |other: &str| {
        file(dir.path(), "two.ini", &format!("{global}[other]\n{other}\n"));
        run(dir.path(), "two.ini --format json").exits(0).json()
    };
    let found = |record: &Value| {
        let jobs = record["jobs"].as_array().unwrap();
        for job in jobs {
            let moved = number(&job["read"]["bytes"]) + number(&job["write"]["bytes"]);
            let epochs = job["feed"]["epochs"].as_array().unwrap();
            let of_epochs: u64 = epochs.iter().map(|epoch| number(&epoch["moved_bytes"])).sum();
            assert_eq!(of_epochs, moved, "{job:#}");
        }
        jobs.clone()
    };
    let beside_writes = both("rw=write\nfile_prefix=w");
    let jobs = found(&beside_writes);
    let epochs = |job: &Value| job["feed"]["epochs"].as_array().unwrap().clone();
    assert!(epochs(&jobs[1]).iter().all(|epoch| epoch["storage_read_bytes"].is_null()));
    if beside_writes["plan"]["jobs"][1]["direct"] == "direct" {
        let kept = &rule(&jobs[0]["feed"], "every epoch is read from storage")["kept"];
        assert!(epochs(&jobs[0])[0]["storage_read_bytes"].is_number(), "{jobs:#?}");
        assert_ne!(kept, &Value::Null, "{jobs:#?}");
    }
    let jobs = found(&both("rw=read\nfile_prefix=s\nepochs=1"));
    for job in &jobs {
        assert!(epochs(job).iter().all(|epoch| epoch["storage_read_bytes"].is_null()), "{job:#}");
        let from_storage = rule(&job["feed"], "every epoch is read from storage");
        assert_eq!(from_storage["kept"], Value::Null);
        assert!(from_storage["found"].as_str().unwrap().contains("another job reads"), "{job:#}");
    }
}

/// Bytes from storage count in the first epoch from before its first read on.
#[test]
fn the_first_epoch_has_all_that_it_read_from_storage() {
    let dir = scratch();
    let jobs = "[t]\nfiles=6\nsample_size=1000000\nbatch_samples=1\nepochs=1\nreaders=6\n\
                prefetch=1\ncompute=sleep\ncompute_time=1ms\ngpu=none\npath=host\nengine=psync\n\
                bs=1m\ndepth=1\ndirectory=d\nfile_prefix=t\nverify=off\nkeep=1\n";
    file(dir.path(), "race.ini", jobs);
    for _ in 0..8 {
        let record = run(dir.path(), "race.ini --format json").exits(0).json();
        let job = &record["jobs"][0];
        let process = &job["cache"]["process_read_bytes"];
        let epoch = &job["feed"]["epochs"][0];
        assert_eq!(epoch["moved_bytes"], job["read"]["bytes"], "{epoch:#}");
        if record["plan"]["jobs"][0]["direct"] != "direct" || number(process) == 0 {
            println!("SKIPPED: nothing is counted as read from storage here");
            return;
        }
        let stored = number(&epoch["storage_read_bytes"]);
        assert!(stored >= number(&epoch["moved_bytes"]), "{epoch:#}");
    }
}

/// The time of a batch has none of gpuio's own checks: with one I/O at a time it is that of its
/// I/Os, and what little lies between them.
#[test]
fn the_time_of_a_batch_is_that_of_its_reads() {
    let dir = scratch();
    let jobs = "[kv]\nfiles=4\nsample_size=4194304\nbatch_samples=1\nepochs=6\nreaders=1\n\
                prefetch=1\ndepth=1\nengine=psync\npath=staged\ngpu=software\ncompute=none\nbs=1m\n\
                directory=d\nfile_prefix=vb\nverify=inline\n";
    file(dir.path(), "vb.ini", jobs);
    let record = run(dir.path(), "vb.ini --format json").exits(0).json();
    let job = &record["jobs"][0];
    let all =
        |summary: &Value| summary["mean_ns"].as_f64().unwrap() * summary["count"].as_f64().unwrap();
    let (batches, ios) = (all(&job["feed"]["batch_read"]), all(&job["read"]["latency"]["total"]));
    let checks = job["between_ios_ns"].as_f64().unwrap();
    assert_eq!(number(&job["feed"]["batch_read"]["count"]), 24);
    // Three quarters of the checks lie between the I/Os of a batch.
    assert!(
        batches - ios < checks / 4.0,
        "{batches} of batches, {ios} of I/Os, {checks} of checks"
    );
    assert!(batches >= ios * 0.99, "{batches} of batches, {ios} of I/Os");
}

#[test]
fn what_is_printed_says_the_scale() {
    let dir = scratch();
    let line = "cosmoflow-h100 --gpu software:0 --directory d --scale 0.00001 --epochs 1 \
                --no-watch --no-stats-page";
    let ran = run(dir.path(), &format!("{line} --evidence -o r.json")).exits(0);
    for words in [
        "scale 0.00001: 5 of 524,288 files",
        " written, kept in d)",
        "MLPerf rule broken: the whole data set (scale 0.00001: 5 of 524288 files)",
        "MLPerf rule broken: at least 500 steps an epoch (5)",
        "a warm-up, then 5 runs",
        "MLPerf rule broken: the parameters of a workload of MLPerf's (epochs=1 (--epochs))",
    ] {
        assert!(flat(&ran.out).contains(words), "no {words:?} in {}", ran.out);
    }
    assert!(!ran.out.contains("MLPerf rules kept"), "{}", ran.out);
    // Before any other result, and on the page too.
    let at = |words| ran.out.find(words).unwrap_or_else(|| panic!("no {words:?} in {}", ran.out));
    assert!(at("fast enough for the accelerators?") < at("throughput"), "{}", ran.out);
    // Short as well, where the fastest path is no answer.
    let show = words("show r.json --format summary");
    let short = flat(&finish(command(dir.path()).args(show)).exits(0).out);
    assert!(short.contains(": fast enough for the accelerators? "), "{short}");
    assert!(!short.contains("fastest way") && !short.contains("Your storage"), "{short}");
    for format in ["html", "markdown"] {
        let mut report = command(dir.path());
        let line = format!("report r.json --format {format} -o -");
        let page = finish(report.args(words(&line))).exits(0).out;
        let at = |words| page.find(words).unwrap_or_else(|| panic!("no {words:?} in {page}"));
        let answer = at("Fast enough for the accelerators of cosmoflow");
        assert!(answer < at("samples/s") && at("samples/s") < at("MLPerf rule broken"), "{page}");
        assert!(page.find("throughput").is_none_or(|rates| answer < rates), "{page}");
        let folded = "<details><summary>rules of MLPerf Storage:</summary>";
        assert!(page.contains(folded) || format == "markdown", "{page}");
    }
    assert!(!ran.out.contains("device sampling"), "{}", ran.out);
    // Facts that are unknown are no less true of a workload that was changed.
    let cut = format!("{line} -v --runtime 200ms").replace("--epochs 1 ", "--epochs 100000 ");
    let ran = run(dir.path(), &cut).exits(0);
    let rule = "every sample is read exactly once an epoch (";
    assert!(flat(&ran.out).contains(rule) && ran.out.contains("never began"), "{}", ran.out);
    run(dir.path(), &format!("{line} -o r.json")).exits(2).prints(&["r.json"]);
    let quiet = run(dir.path(), &format!("{line} -o r.json --force --quiet")).exits(0);
    assert_eq!(quiet.out, "");
    let mut show = command(dir.path());
    let csv = finish(show.args(words("show r.json --format csv"))).exits(0).out;
    let row = csv_row(&csv);
    assert_eq!(row["feed_scale"], "0.00001", "{csv}");
    let utilisation: f64 = row["feed_utilisation_percent"].parse().unwrap();
    assert!(utilisation > 0.0 && utilisation <= 100.0, "{csv}");
}

#[test]
fn every_preset_has_a_plan() {
    let dir = scratch();
    let list = run(dir.path(), "list").exits(0).out;
    let names: Vec<&str> = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(names.len(), gpuio_job::workload::preset::PRESETS.len(), "{list}");
    std::fs::create_dir(dir.path().join("m")).unwrap();
    tensors(&dir.path().join("m/model.safetensors"), &[10_000_000, 10_000_000]);
    for name in names {
        let shown = run(dir.path(), &format!("show {name}")).exits(0).out;
        let sources = ["# MLPerf Storage v", "# Source: "];
        assert!(sources.iter().any(|source| shown.contains(source)), "{shown}");
        file(dir.path(), "own.ini", &shown);
        let reads = shown.contains("\nfilename=*");
        let more = if reads { "m" } else { "--scale 0.001" };
        let more = format!("{more} --gpu software --dry-run");
        let plan = run(dir.path(), &format!("{name} {more}")).exits(0).out;
        assert_eq!(!reads, plan.contains("\nscale = 0.001\n# scale 0.001: "), "{plan}");
        let own = run(dir.path(), &format!("own.ini {more}")).exits(0).out;
        assert_eq!(own, plan, "the text that is shown is the preset");
    }
    let others = "did you mean unet3d-a100, unet3d-h100, unet3d-b200?";
    run(dir.path(), "show unet3d-b100").exits(2).prints(&[others]);
    run(dir.path(), "show unet3d-h10").exits(2).prints(&["did you mean unet3d-h100?"]);
    for begin in ["unet3d", "unet"] {
        let ran = run(dir.path(), begin).exits(2);
        let ran = ran.prints(&[&format!("there is no workload '{begin}'"), "did you mean unet3d-"]);
        assert!(!ran.err.contains("dlrm-b200"), "{}", ran.err);
    }
}

/// The load that stands beside Python's goes as requested, and has no word on what was not set.
#[test]
fn the_load_that_a_model_proposes_is_in_order() {
    let dir = scratch();
    std::fs::create_dir(dir.path().join("m")).unwrap();
    tensors(&dir.path().join("m/model.safetensors"), &[10_000_000, 10_000_000]);
    let line = "safetensors m --try --gpu software --no-watch";
    let text = flat(&run(dir.path(), line).exits(0).out);
    let (_, flags) = text.split_once("nearest to it: ").unwrap();
    let flags: Vec<&str> = flags.split(' ').take(6).collect();
    let ran = run(dir.path(), &format!("{line} {}", flags.join(" "))).exits(0);
    let all = flat(&ran.out) + &ran.err;
    for wrong in ["error: ", "'depth'", "did not take", "Queue depth", "nearest to it"] {
        assert!(!all.contains(wrong), "{wrong}: {all}");
    }
}

/// A try of each preset has little data and says so; its plan has no endless lines.
#[test]
fn a_try_scales_what_is_long_and_says_so() {
    let dir = scratch();
    let makes = |preset: &&gpuio_job::workload::preset::Preset| !preset.reads_files();
    for preset in gpuio_job::workload::preset::PRESETS.iter().filter(makes) {
        let name = preset.name;
        let ran = run(dir.path(), &format!("{name} --try --gpu software --dry-run")).exits(0);
        let probe = "a run first probes the storage, and where it takes less than ";
        let ran = ran.prints(&["note: --try: ", "data ", " -> ", probe]);
        assert!(ran.out.contains("# in all: ") && ran.out.contains("# time: "), "{}", ran.out);
        // The text names the bytes that the plan has.
        let (_, part) = ran.err.split_once(" -> ").unwrap();
        let part = format!(" {};", part.split_once(',').unwrap().0);
        assert!(ran.out.contains(&part), "{name}: no{part} {}", ran.out);
        let plan = ran.out.lines().filter(|line| !line.starts_with("columns"));
        assert!(plan.clone().all(|line| line.len() < 500), "{name}: {}", ran.out);
    }
    // A value that the user sets stays, and the rest is run.
    let line = "vector-search --try --gpu software --directory d --scale 0.0001 --runtime 200ms \
                --ranks 2 --no-watch";
    let ran = run(dir.path(), line).exits(0);
    assert!(ran.err.contains("note: --try: verify inline -> pass"), "{}", ran.err);
    let ran = run(dir.path(), &format!("{line} --verify inline")).exits(0);
    assert!(ran.err.contains("note: --try: nothing is scaled"), "{}", ran.err);
    // Without a GPU nothing is probed.
    let mut none = command(dir.path());
    none.env("GPUIO_LIBCUDA", "/none").args(words("workload unet3d-h100 --try"));
    let refused = finish(&mut none).exits(3);
    assert!(
        refused.err.contains("--gpu none") && !refused.err.contains("note:"),
        "{}",
        refused.err
    );
    // Files of the user's are read as they are: no data is made, and no probe writes.
    std::fs::create_dir(dir.path().join("m")).unwrap();
    tensors(&dir.path().join("m/a.safetensors"), &[1000]);
    let ran = run(dir.path(), "safetensors m --try --gpu software --dry-run").exits(0);
    assert!(ran.err.contains("note: --try: nothing is scaled\n"), "{}", ran.err);
    // All runs of a sweep have the same data, which is enough for the largest of the values.
    let line = "dali-inference --try --gpu software --directory d --dry-run";
    for values in ["--batch 1,4", "--vary readers=1,2", "--accelerators 1,2"] {
        let ran = run(dir.path(), &format!("{line} {values}")).exits(0);
        assert!(ran.err.contains("the same data for all runs of the sweep"), "{}", ran.err);
        assert!(ran.out.contains("--set verify=pass"), "{}", ran.out);
        let batch = values.contains("batch");
        assert_eq!(ran.err.contains("batch_samples 32 -> "), !batch, "{}", ran.err);
    }
    let phases = "kv-cache-llama3-8b --try --gpu software --directory d --vary bs=1m,2m --dry-run";
    run(dir.path(), phases).exits(2).prints(&["a sweep needs one job"]);
    run(dir.path(), "list --try").exits(2).prints(&["--try", "no effect"]);
}

/// A preset's file is not the user's: errors name the preset.
#[test]
fn errors_name_no_place_in_a_preset() {
    let dir = scratch();
    let ran = run(dir.path(), "vector-search --gpu software --ranks 17 --dry-run").exits(2);
    let words =
        "job 'vector-search', threads=17 (--ranks): 17 threads run, and the whole load has 16: ";
    assert!(ran.err.contains(words), "{}", ran.err);
    std::fs::create_dir(dir.path().join("m")).unwrap();
    tensors(&dir.path().join("m/a.safetensors"), &[1000]);
    let ran = run(dir.path(), "safetensors m --gpu software --ranks 2").exits(2);
    assert!(ran.err.contains("2 threads for 1 block of 16M: "), "{}", ran.err);
    let plan = run(dir.path(), "safetensors m --gpu software --dry-run").exits(0).out;
    assert!(plan.contains("# note: threads 1 instead of 16: "), "{plan}");
    // A flag against the preset's key: the flag is the one to leave out, or the key is turned off.
    let warm = "safetensors m --gpu software --pre-read --dry-run";
    run(dir.path(), warm).exits(2).prints(&[
        "pre_read (--pre-read): it fills the page cache, and invalidate=1 (preset safetensors)",
        "leave out --pre-read, or add --set invalidate=0",
    ]);
    let plan = run(dir.path(), &format!("{warm} --set invalidate=0")).exits(0).out;
    assert!(plan.contains("pre_read = 1\ninvalidate = 0\n"), "{plan}");
    let own = run(dir.path(), "show safetensors").exits(0).out;
    file(dir.path(), "warm.ini", &own.replace("invalidate=1", "pre_read=1"));
    let cold = "warm.ini m --gpu software --invalidate --dry-run";
    run(dir.path(), cold).exits(2).prints(&["leave out --invalidate, or add --set pre_read=0"]);
    let plan = run(dir.path(), &format!("{cold} --set pre_read=0")).exits(0).out;
    assert!(plan.contains("pre_read = 0\ninvalidate = 1\n"), "{plan}");
}

#[test]
fn flags_change_a_workload() {
    let dir = scratch();
    let line = "resnet50-h100 --gpu software --scale 0.01 --set epochs=7 --batch-samples 11 \
                --readers 3 --prefetch 4 --compute-time 9ms --compute memory:25% --accelerators 2 \
                --dry-run";
    let plan = run(dir.path(), line).exits(0).out;
    for words in [
        "epochs = 7",
        "batch_samples = 11",
        "readers = 3",
        "prefetch = 4",
        "compute_time = 9ms",
        "compute = memory:25%",
        "accelerators = 2",
        "scale = 0.01",
    ] {
        assert!(plan.lines().any(|line| line == words), "no {words:?} in {plan}");
    }
    let flags = "--set a=b|--cufile-lib x|--cufile-set a=b|--spec x|--server x|--format json|\
                 --evidence|--details|--serve 1|--quiet|--no-watch|--no-stats-page|--dry-run|\
                 --scale 0.1|--keep";
    for flag in flags.split('|') {
        let name = flag.split(' ').next().unwrap();
        run(dir.path(), &format!("list {flag}")).exits(2).prints(&[name, "no effect"]);
    }
    run(dir.path(), "list x").exits(2).prints(&["'x'"]);
    run(dir.path(), "show").exits(2).prints(&["presets: unet3d-a100"]);
}

#[test]
fn mistakes_in_a_workload_have_a_line_and_a_column() {
    let dir = scratch();
    for (wrong, says) in [
        ("compute_time=-1", "mine.ini:2:14"),
        ("compute_time=0", "mine.ini:2:14"),
        ("sample_size=10k+-20k", "mine.ini:2:18"),
        ("columns=4+,x", "mine.ini:2:12"),
        ("columns=4,8", "no column is read"),
        ("sample_order=zip", "in-order, reverse or zipf:THETA"),
        ("sample_order=zipf:x", "mine.ini:2:19"),
        ("sample_order=zipf:0", "mine.ini:2:19"),
        ("cache_memory=0", "mine.ini:2:14"),
        ("compute=kernel:0", "mine.ini:2:16"),
        ("scale=0", "mine.ini:2:7"),
        ("epoch=1", "nearest: epochs"),
    ] {
        file(dir.path(), "mine.ini", &format!("[a]\n{wrong}\n"));
        run(dir.path(), "mine.ini").exits(2).prints(&[says]);
    }
}

/// A directory of the user's: a feed reads none of it and says which command does; that one reads
/// all, and changes nothing.
#[test]
fn own_files_of_any_format_are_read_by_the_command_that_a_feed_names() {
    let dir = scratch();
    let mine = dir.path().join("mine");
    std::fs::create_dir_all(mine.join("below")).unwrap();
    let files = [("a.npz", 3_000_001), ("b.jpg", 17), (".hidden", 5), ("below/c.npz", 9)];
    for (name, length) in files {
        std::fs::write(mine.join(name), vec![7; length]).unwrap();
    }
    let command = "gpuio workload own-files mine";
    let feed = "cosmoflow-h100 --gpu software --directory mine --scale 0.00001 --dry-run";
    run(dir.path(), feed).exits(0).prints(&["mine has 2 other files, such as a.npz", command]);
    run(dir.path(), "cosmoflow-h100 mine").exits(2).prints(&["reads no files of yours", command]);
    run(dir.path(), "own-files --directory mine").exits(2).prints(&[command]);
    // In the place of the workload itself.
    run(dir.path(), "mine --gpu software").exits(2).prints(&[command, "--directory mine"]);
    std::fs::create_dir(dir.path().join("m")).unwrap();
    tensors(&dir.path().join("m/model.safetensors"), &[1000]);
    run(dir.path(), "m --bs 1m,2m").exits(2).prints(&["gpuio workload safetensors m;"]);
    let ran = run(dir.path(), "own-files mine --gpu software --no-watch -o r.json").exits(0);
    assert!(flat(&ran.out).contains("in 1 directory below it are not read"), "{}", ran.out);
    let record: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(number(&record["jobs"][0]["read"]["bytes"]), 3_000_018, "{record:#}");
    for (name, length) in files {
        assert_eq!(std::fs::read(mine.join(name)).unwrap(), vec![7; length]);
    }
    assert_eq!(std::fs::read_dir(&mine).unwrap().count(), 4, "nothing was made");
}
