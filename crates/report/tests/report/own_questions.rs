//! Loads with a question of their own: texts and reports begin with the answer, in the same words,
//! and loads with different questions are not compared.

use gpuio_record::{
    AcceleratorSearch, AcceleratorTry, ContentDigest, EndedHow, FeedResult, FlushPlan,
    MappedResult, PartPlan, RangeKind, RangesPlan, Record, RepeatPlan,
};
use gpuio_report::format::text::Show;
use gpuio_report::set::find_set_format;

use crate::one_load::set;
use crate::records;

const MS: u64 = 1_000_000;

/// Two saves of 2 of 8 ranks by way of staged pages, and a restore.
fn checkpoint() -> Record {
    let part = PartPlan { scale: 0.01, full_size_bytes: 13_125_001_216, full_threads: 8 };
    let one = |name: &str, nth, directory: &str| {
        let mut job = records::job(name);
        (job.size_bytes, job.part) = (128 << 20, Some(part));
        job.repeat = Some(RepeatPlan { of: name.to_owned(), nth, times: 2 });
        job.directory = Some(directory.to_owned());
        job.read_percent = if name == "restore" { 100 } else { 0 };
        job
    };
    let stage = "/dev/shm/gpuio-stage-wl";
    let mut record = records::record(vec![
        one("save-stall", 1, stage),
        one("save-stall", 2, stage),
        one("save-drain", 1, "wl"),
        one("restore", 1, "wl"),
    ]);
    for (job, took) in record.jobs.iter_mut().zip([10, 14, 400, 500]) {
        (job.last_done_ns, job.between_ios_ns) = (took * MS, 0);
    }
    record
}

/// A text or a report without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn report(records: Vec<Record>, format: &str) -> String {
    flat(&(find_set_format(format).unwrap().render)(&set(records)))
}

#[test]
fn a_checkpoint_says_how_long_training_stops() {
    let record = checkpoint();
    // 256 MiB in 12 ms are 97.8 GiB in 4.69 s.
    let stall = "training stops for 12.0 ms (median of 2 saves, 10.0 ms to 14.0 ms: 256 MiB at \
                 20.8 GiB/s); the run was a part, 0.26 % of 97.8 GiB: a forecast from it, at the \
                 same rate, is 3.91 s to 5.48 s for all; caches that fill and the rate of a longer \
                 run are not in it";
    let lines = [
        stall,
        "a save is in the files after another 400 ms (one drain: ",
        "a restart waits for 500 ms (one restore: ",
    ];
    let text = flat(&gpuio_report::render_text(&record, 400));
    let questions = [
        "how long do checkpoints stop training? save-stall ",
        "how long after that is a checkpoint in the files? save-drain ",
        "how long does a restart wait for its checkpoint? restore ",
    ];
    assert!(questions.iter().all(|question| text.contains(question)), "{text}");
    let before_figures = text.split("throughput").next().unwrap();
    assert!(lines.iter().all(|line| before_figures.contains(line)), "{text}");
    for format in ["markdown", "html"] {
        let page = report(vec![record.clone()], format);
        assert!(lines.iter().all(|line| page.contains(line)), "{page}");
        assert!(page.contains("repeated jobs:") && !page.contains(" loads, from "), "{page}");
    }
    let mut own = record.clone();
    own.jobs[0].between_ios_ns = 40 * MS;
    let text = flat(&gpuio_report::render_text(&own, 400));
    let words = "unknown: 83 % of the workers' time was gpuio's own, which made or checked data \
                 (--verify rewrite works after the run); with that, a save took 12.0 ms (median \
                 of 2 saves";
    assert!(text.contains(words) && !text.contains("training stops for"), "{text}");
    // Others that nobody saw may have been most.
    let mut unseen = record.clone();
    unseen.jobs[0].others_cpu_unknown = Some("whether others used the CPUs: too short".to_owned());
    let text = flat(&gpuio_report::render_text(&unseen, 400));
    let words = "unknown: whether others used the CPUs: too short (a larger part takes longer: \
                 leave out --try, or raise --scale); with that, a save took 12.0 ms";
    assert!(text.contains(words) && !text.contains("training stops for"), "{text}");
    // Where it is no line below its question, the answer has it.
    let page = report(vec![unseen], "markdown");
    let words = "save-stall: how long do checkpoints stop training? unknown: whether others";
    assert!(page.contains(words), "{page}");
    // The rule of flushes is about the files, not about the staged pages before them.
    let rule = "fsync at the end of each write";
    for (at_end, words) in
        [(true, format!("rules kept: {rule}")), (false, format!("{rule} (not after each: save-d"))]
    {
        let mut flushed = record.clone();
        for job in &mut flushed.plan.jobs {
            let drains = at_end && job.name == "save-drain";
            let (every_ios, data_only, at_close) = (None, false, false);
            let flush = FlushPlan { every_ios, data_only, at_end, at_close };
            job.flush = drains.then_some(flush);
        }
        let text = flat(&gpuio_report::render_text(&flushed, 400));
        assert!(text.contains(&words), "no {words} in {text}");
    }
    let mut cut = record;
    cut.jobs[3].ended = EndedHow::Interrupted;
    let text = flat(&gpuio_report::render_text(&cut, 400));
    assert!(text.contains("unknown: no restore was complete"), "{text}");
}

#[test]
fn reports_begin_with_when_a_model_was_in_memory() {
    let mut job = records::job("files");
    let bytes = 1 << 20;
    let kind = RangeKind::Tensors;
    job.ranges = Some(RangesPlan { kind, count: 39, empty: 0, bytes, passes: 1 });
    let mut record = records::record(vec![job]);
    record.jobs[0].read.bytes = bytes;
    record.jobs[0].last_done_ns = 11_300_000;
    let words = "39 tensors of 2 files, 1.00 MiB, by 2 threads: in memory after 11.3 ms";
    let text = flat(&gpuio_report::render_text(&record, 400));
    assert!(text.contains(words), "{text}");
    // The load of Python's loader is another one, and the text says in which respects.
    for words in ["makes another load: 2 calls", "up to 72.0 MiB", "pieces of up to 1.00 MiB"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("nearest to it: --path library --bs 72M --threads "), "{text}");
    for format in ["markdown", "html"] {
        let page = report(vec![record.clone()], format);
        assert!(page.matches(words).count() == 2, "at the top and below its title: {page}");
    }
}

/// A path that maps the files has read them before its first I/O.
#[test]
fn the_fastest_way_of_a_model_is_so_with_the_time_to_map_its_files() {
    let bytes = 1 << 30;
    let of = |path: &str, rate: f64, map_ns: u64| {
        let mut job = records::job(&format!("files-{path}"));
        path.clone_into(&mut job.path.choice.actual);
        job.gpus.clone_from(&records::staged_in_trouble().plan.jobs[0].gpus);
        let kind = RangeKind::Tensors;
        job.ranges = Some(RangesPlan { kind, count: 39, empty: 0, bytes, passes: 1 });
        job.read_percent = 100;
        let mut record = records::record(vec![job]);
        let job = &mut record.jobs[0];
        (job.read.bytes, job.read.bytes_per_s, job.proof) = (bytes, rate, None);
        let mapped = MappedResult { map_ns, register_ns: 25 * MS, ..MappedResult::default() };
        job.mapped = (map_ns > 0).then_some(mapped);
        record
    };
    let gib = f64::from(1 << 30);
    let both = |map_ms: u64| [of("gather", 2.0 * gib, 0), of("mapped", 5.0 * gib, map_ms * MS)];
    let said = |map_ms: u64, fastest: &str, words: &str, of_set: &str| {
        let [mut record, mapped] = both(map_ms);
        record.plan.jobs.extend(mapped.plan.jobs);
        record.jobs.extend(mapped.jobs);
        let summary =
            (gpuio_report::find("summary").unwrap().render)(&record, 120, Show::default());
        let summary = flat(&summary);
        assert!(summary.contains(&format!(" is `{fastest}` for ")), "{summary}");
        assert!(summary.contains(words), "{summary}");
        let page = report(both(map_ms).to_vec(), "markdown");
        assert!(page.contains(of_set), "{page}");
    };
    // 0.2 s to read and 0.8 s before; 0.2 s and 0.1 s before; by gather 0.5 s.
    let late = "1.00 GiB/s with the 800 ms to map the files";
    said(775, "gather", &format!(" `mapped`: {late}."), "mapped 1.00 GiB/s with the time to map");
    let soon = "3.33 GiB/s with the 100 ms to map the files";
    said(75, "mapped", soon, "mapped 3.33 GiB/s with the time to map");
}

#[test]
fn loads_with_different_questions_are_named_and_not_compared() {
    let of = |name: &str, faster: f64| {
        let mut job = records::job(name);
        job.part = Some(PartPlan { scale: 0.1, full_size_bytes: 1 << 40, full_threads: 2 });
        let mut record = records::record(vec![job]);
        record.plan.jobs[0].threads = if faster > 1.0 { 2 } else { 1 };
        record.jobs[0].read.bytes_per_s *= faster;
        record
    };
    let two = || vec![of("unet3d-h100", 1.0), of("resnet50-h100", 2.3)];
    for format in ["markdown", "html"] {
        let page = report(two(), format);
        let words = "Rates of loads with different questions are not compared: unet3d-h100, \
                     resnet50-h100.";
        assert!(page.contains(words) && !page.contains("2.3 times"), "{page}");
    }
    let picture = report(two(), "svg");
    assert!(picture.contains("No plot") && !picture.contains(">resnet50-h100<"), "{picture}");
    // Two threads and one of the same load are compared.
    let page = report(vec![of("unet3d-h100", 1.0), of("unet3d-h100", 2.3)], "markdown");
    assert!(page.contains("2 loads, from ") && page.contains("2.3 times"), "{page}");
}

/// A record of a feed with these lines of a job file.
fn feed(lines: &str) -> Record {
    let mut job = records::job("decode");
    job.feed = gpuio_testkit::jobs::job(lines).feed;
    records::record(vec![job])
}

/// A result of a feed whose batches took these times, in nanoseconds.
fn outcome(took: impl IntoIterator<Item = u64>) -> FeedResult {
    let mut times = gpuio_base::stat::Histogram::default();
    took.into_iter().for_each(|ns| times.record(ns));
    let text = serde_json::json!({
        "span_ns": 1_000_000_000, "samples": 100, "samples_per_s": 100.0, "steps": 100,
        "complete": true, "stall_ns": 0, "first_batch_ns": 0, "accelerators": [], "epochs": [],
        "utilisation_percent": null, "wait": null, "batch_read": times.summary(), "rules": [],
    });
    serde_json::from_value(text).unwrap()
}

#[test]
fn a_cache_says_first_whether_its_level_was_kept() {
    let lines =
        "path=host\nfiles=100\nsample_size=1000\nbatch_samples=1\ncompute=none\nslo=50ms/100ms\n";
    let said = |took: Vec<u64>, words: &str| {
        let mut record = feed(lines);
        record.jobs[0].feed = Some(outcome(took));
        let text = flat(&gpuio_report::render_text(&record, 400));
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {text}"));
        assert!(at("service level kept?") < at(words) && at(words) < at("throughput"), "{text}");
        for format in ["markdown", "html"] {
            let page = report(vec![record.clone()], format);
            let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}: {page}"));
            assert!(at(&format!("Service level kept? {words}")) < at("throughput"), "{page}");
        }
        let summary =
            (gpuio_report::find("summary").unwrap().render)(&record, 120, Show::default());
        assert!(flat(&summary).contains(&format!("service level kept? {words}")), "{summary}");
    };
    let few = vec![661 * MS; 20];
    said(few, "no: half of the contexts took over 661 ms, 95 % were to take at most 50.0 ms");
    let all = |ms: u64| vec![ms * MS; 5000];
    said(all(60), "no: 95 % of the contexts took 60.0 ms, 95 % were to take at most 50.0 ms");
    said(all(10), "yes: of the contexts 95 % took 10.0 ms (asked: 50.0 ms), 99 % took 10.0 ms (");
    let few = "undetermined: 20 contexts read, at least 200 needed for 95 %; 95 % were to take";
    said(vec![10 * MS; 20], few);
    // Neither do four say what half of all take, nor does any other line.
    let few = "undetermined: 4 contexts read, at least 200 needed for 95 %; 95 % were to take at \
               most 50.0 ms; each took longer";
    said(vec![661 * MS; 4], few);
    let mut record = feed(lines);
    record.jobs[0].feed = Some(outcome(vec![661 * MS; 4]));
    let text = flat(&gpuio_report::render_text(&record, 400));
    let few = "service level interactive: 95 % within 50.0 ms and 99 % within 100 ms (too few: 4 \
               contexts read; each took longer)";
    assert!(text.contains(few) && !text.contains("not kept"), "{text}");
}

#[test]
fn a_search_for_accelerators_is_in_the_report_with_its_runs() {
    let lines = "path=host\nfiles=100\nsample_size=1000\nbatch_samples=1\ncompute=sleep\n";
    let mut record = feed(&format!("{lines}compute_time=1ms\n"));
    let mut found = outcome([]);
    let answer = "the most accelerators that kept 90 % are 2, and 4 did not";
    let one = |accelerators, utilisation_percent, verdict: &str| AcceleratorTry {
        accelerators,
        utilisation_percent,
        verdict: verdict.to_owned(),
        samples_per_s: 12.5,
        bytes_per_s: 1e9,
    };
    let kept = "90 % kept";
    let tries = vec![
        one(1, Some(99.0), kept),
        one(2, Some(95.5), kept),
        one(4, Some(50.25), "90 % not kept"),
        one(3, None, "unknown"),
    ];
    let least_utilisation_percent = 90.0;
    let answer = answer.to_owned();
    found.search = Some(AcceleratorSearch { least_utilisation_percent, answer, tries });
    record.jobs[0].feed = Some(found);
    let text = gpuio_report::render_text(&record, 400);
    let rows = text.lines().filter(|line| line.contains("% kept") || line.contains("not kept"));
    assert!(rows.count() >= 3 && text.contains("95.5 %"), "{text}");
    let asked = "keep their utilisation? the most accelerators that kept 90 % are 2, and 4 did not";
    assert!(flat(&text).contains("the most accelerators that kept 90 % are 2"), "{text}");
    for format in ["markdown", "html"] {
        let page = report(vec![record.clone()], format);
        assert!(page.contains(asked) && page.contains("90 % not kept"), "{page}");
        assert!(page.find(asked) < page.find("throughput"), "{page}");
    }
    let picture = report(vec![record], "svg");
    for words in [
        ">Accelerator utilisation against accelerators: decode</text>",
        "<title>4: utilisation 50.2 % (90 % not kept)</title>",
        ">100 %</text>",
        "Utilisation is unknown of 1 run.",
        ">to keep</text>",
    ] {
        assert!(picture.contains(words), "no {words}: {picture}");
    }
}

/// Programs need not compute what texts say; who changes it changes the record.
#[test]
fn json_has_the_answers_that_texts_begin_with() {
    let json = |record: &Record| -> serde_json::Value {
        let find = gpuio_report::find("json").unwrap();
        serde_json::from_str(&(find.render)(record, 120, Show::default())).unwrap()
    };
    assert_eq!(json(&records::host_quick())["answers"], serde_json::Value::Null);
    let mut value = json(&checkpoint());
    let answers: Vec<&str> =
        value["answers"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let text = report(vec![checkpoint()], "markdown");
    assert!(answers.len() > 1 && answers.iter().all(|answer| text.contains(answer)), "{answers:?}");
    let parsed =
        |value: &serde_json::Value| gpuio_report::format::json::parse(&value.to_string()).unwrap();
    let read = parsed(&value);
    assert!(read.content_sha256 == ContentDigest::Intact && read.answers.is_empty());
    assert_eq!(json(&read), value);
    value["answers"][0] = "Training never stops.".into();
    assert!(matches!(parsed(&value).content_sha256, ContentDigest::Changed(_)));
}
