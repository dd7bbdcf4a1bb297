//! The first words and the first plot of a report, and the colours of its paths.

use gpuio_record::{
    Arrivals, DirectMode, EndedHow, Pacing, Record, Route, RunOf, Source, Warning, WarningKind,
};
use gpuio_report::format::text::Show;
use gpuio_report::set::{Member, Set, find_set_format};

use crate::one_load::{automatic, grid, run, set};
use crate::records;

fn render(name: &str, set: &Set) -> String {
    (find_set_format(name).unwrap().render)(set)
}

/// The sentences above the facts of a machine.
fn sentences(set: &Set) -> String {
    let text = render("markdown", set);
    let body = text.split_once("# loads\n\n").unwrap().1;
    body.split("\n\n- date").next().unwrap().replace("\n\n", " ").replace('\\', "")
}

/// A set whose records are a sweep's points, of which the last has none.
fn of_sweep(search: Option<&str>, answer: Option<&str>) -> Set {
    let depths = [1, 2, 4];
    let runs = depths[..2].iter().map(|depth| run("host", 4096, *depth, false, 1.0));
    let mut set = set(runs.collect());
    let words = ["yes", "no"];
    for (nth, member) in set.members.iter_mut().enumerate() {
        member.at = vec![("depth".to_owned(), depths[nth].to_string())];
        member.within_limit = search.map(|_| words[nth].to_owned());
    }
    let points = depths.map(|depth| {
        let ended = if depth < 4 { Some("settled") } else { None };
        serde_json::json!({"at": [depth.to_string()], "records": [], "ended": ended})
    });
    let sweep = serde_json::json!({
        "gpuio_sweep": 1, "name": "loads", "tool": {"name": "gpuio", "version": "1"},
        "command": [], "started_at": "", "seed": 1, "search": search, "answer": answer,
        "axes": [{"key": "depth", "values": ["1", "2", "4"]}], "points": points,
    });
    set.sweeps.push(serde_json::from_value(sweep).unwrap());
    set
}

/// Missing points stand above the figures, and a search's limit with the points that exceed it.
#[test]
fn an_unfinished_sweep_says_so_first() {
    let resume = "Run the same command again to resume.";
    let of = |set: Set| (sentences(&set), render("html", &set));
    let (plain, page) = of(of_sweep(None, None));
    let words = format!("Not finished: runs are missing of depth=4. {resume}");
    assert!(plain.starts_with(&words), "{plain}");
    assert!(page.contains(&words) && !page.contains("within limit"));
    assert!(
        render("markdown", &of_sweep(None, None)).contains("| randread 4K, 2 threads at depth 2")
    );
    let limit = "The highest depth with p99 at most 5ms";
    let (search, page) = of(of_sweep(Some(limit), None));
    let words = format!("Not finished: {limit}: no answer yet. {resume}");
    assert!(search.starts_with(&words), "{search}");
    for text in [page, render("markdown", &of_sweep(Some(limit), None))] {
        assert!(text.contains("within limit") && text.contains(limit), "{text}");
    }
    let answer = format!("{limit}: reached at depth=1");
    let (ended, _) = of(of_sweep(Some(limit), Some(&answer)));
    assert!(ended.starts_with(&answer) && !ended.contains("Not finished"), "{ended}");
}

/// A value of a sweep's axis without effect makes no load of its own, and no second bar: its run
/// did not get it, and has a depth that gpuio chose.
#[test]
fn values_without_effect_are_runs_of_one_load() {
    let at = |depth: &str, ours, member: &mut Member| {
        member.record = run("gds", 4096, 1, ours, 1.0);
        member.at = vec![("depth".to_owned(), depth.to_owned())];
    };
    let mut swept = set(vec![run("gds", 4096, 1, false, 1.0); 4]);
    for (nth, member) in swept.members.iter_mut().enumerate() {
        if nth % 2 == 0 { at("1", false, member) } else { at("8", true, member) }
    }
    let page = render("markdown", &swept);
    let load = "randread 4K, 2 threads at depth 1";
    assert!(page.contains(&format!("| {load} | gds | 4 |")), "{page}");
    assert!(!page.contains("automatic"), "{page}");
    // Apart from a sweep it is another load who chose the depth, and a job's name says nothing.
    let both = [false, true].map(|ours| run("gds", 4096, 1, ours, 1.0)).to_vec();
    let bars = render("svg", &set(both));
    assert!(bars.contains(">gds<") && bars.contains(">gds (automatic)<"), "{bars}");
    assert!(!bars.contains(", job<"), "{bars}");
}

/// A label is not squeezed where a name says which load it is.
#[test]
fn bars_with_long_labels_have_names() {
    let path = "p".repeat(70);
    let mut both = set([1, 2].map(|depth| run(&path, 4096, depth, false, 1.0)).to_vec());
    let bars = |set: &Set| render("svg", set);
    let by_record = bars(&both);
    for member in &both.members {
        assert!(by_record.contains(&format!(">{}<", member.name)), "{by_record}");
    }
    assert!(!by_record.contains("textLength"), "{by_record}");
    for (nth, member) in both.members.iter_mut().enumerate() {
        let name = format!("load-{nth}");
        (member.record.plan.jobs[0].name, member.record.jobs[0].name) = (name.clone(), name);
    }
    let by_job = bars(&both);
    assert!(by_job.contains(">load-0<") && by_job.contains(">load-1<"), "{by_job}");
    let short = bars(&set([1, 2].map(|depth| run("gds", 4096, depth, false, 1.0)).to_vec()));
    assert!(short.contains(">gds randread 4K, 2×1<"), "{short}");
}

/// The title says little: a reader sees first what was run.
#[test]
fn the_command_stands_below_the_title() {
    let mut all = set(vec![run("host", 4096, 1, false, 1.0); 2]);
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    all.members[0].record.command = words("/opt/gpuio bench --path host");
    all.members[1].record.command = words("gpuio bench --path gds");
    let page = render("html", &all);
    let line = "<h1>loads</h1>\n<p class=\"sub\"><code>gpuio bench --path host</code> and 1 more \
                command</p>";
    assert!(page.contains(line), "{page}");
    let mut swept = of_sweep(None, None);
    swept.sweeps[0].command = words("gpuio sweep --preset quick");
    let page = render("html", &swept);
    assert!(page.contains("<code>gpuio sweep --preset quick</code></p>"), "{page}");
    swept.sweeps[0].command = vec!["x".repeat(1000)];
    let page = render("html", &swept);
    assert!(page.contains(&format!("<code>{}…</code>", "x".repeat(240))), "{page}");
}

/// A picture has the title that it is given, above that of its plot.
#[test]
fn a_picture_has_its_title() {
    let picture = render("svg", &grid());
    let (title, plot) = (picture.find(">loads</text>"), picture.find(">Throughput against block"));
    assert!(title.is_some() && plot.is_some(), "{picture}");
    let none = render("svg", &Set { title: String::new(), ..grid() });
    assert!(!none.contains(">loads</text>") && none.len() < picture.len(), "{none}");
}

/// Figures that do not follow from their counts are doubted above all others.
#[test]
fn a_changed_record_is_doubted_first() {
    let mut set = set(vec![run("host", 4096, 1, false, 1.0)]);
    set.members[0].recheck.wrong.push("job 'job', reads: bytes per second: 2, 1".to_owned());
    let doubt = "run-0: Figures do not follow from what the run counted";
    assert!(sentences(&set).replace('*', "").starts_with(doubt), "{}", sentences(&set));
    let page = render("html", &set);
    assert!(page.contains(&format!("<p class=\"banner\" role=\"note\">{doubt}")), "{page}");
}

/// A record of another run, all of whose figures follow, is not called changed.
#[test]
fn each_kind_of_doubt_has_its_own_words() {
    let mut set = set(vec![run("host", 4096, 1, false, 1.0)]);
    set.members[0].recheck.misplace(Some("it is not the one that the sweep made: other digest"));
    let text = sentences(&set).replace('*', "");
    let words = "Not all runs that were made, or not for sure: run-0: left out of all figures: \
                 Another record is in the place of one of the sweep: it is not the one that \
                 the sweep made: other digest; the figures that can be recomputed follow";
    assert!(text.starts_with(words) && !text.contains("do not follow"), "{text}");
    // Nor has it a figure, be it the only record.
    for format in ["markdown", "html", "svg"] {
        let text = render(format, &set);
        assert!(text.contains("left out of all figures"), "{format}: {text}");
        let figures = ["as requested", "requested path", " MB/s", "median of", "(one run)"];
        let found: Vec<_> = figures.iter().filter(|one| text.contains(**one)).collect();
        assert!(format == "html" || found.is_empty(), "{format}: {found:?}: {text}");
    }
    assert!(render("html", &set).contains("No figure is shown"));
}

/// Runs that records name beside themselves, and that are not in the set, are missed on top.
#[test]
fn runs_that_are_not_there_are_missed_first() {
    let of = |run, runs| RunOf { of: "--ab of 10:00".to_owned(), point: "a".to_owned(), run, runs };
    let mut first = run("host", 4096, 1, false, 1.0);
    let mut third = run("host", 4096, 1, false, 2.0);
    (first.run_of, third.run_of) = (Some(of(1, None)), Some(of(3, None)));
    let words = "Not all runs that were made, or not for sure: --ab of 10:00, a: 1 record is not \
                 here of at least 3 runs (and 1 further reason).";
    let both = set(vec![first.clone(), third]);
    let text = sentences(&both).replace('*', "");
    assert!(text.starts_with(words), "{text}");
    for format in ["csv", "openmetrics", "fio-json"] {
        let text = render(format, &both);
        let all = words.strip_suffix('.').unwrap();
        assert!(text.contains("not_all_runs") && text.contains(all), "{format}: {text}");
    }
    // Neither does a record say how many runs and points its sweep made.
    let text = sentences(&set(vec![first.clone()])).replace('*', "");
    assert!(
        text.contains("not for sure: the records are of a sweep, and its sweep.json"),
        "{text}"
    );
    first.run_of = Some(of(1, Some(1)));
    assert!(!sentences(&set(vec![first])).contains("Not all runs"));
}

/// A record during which other programs read most of what the drive delivered.
fn disturbed(mut record: Record) -> Record {
    for job in &record.plan.jobs {
        let ours_bytes = 1 << 30;
        let kind = WarningKind::OtherTraffic {
            device: "nvme0n1".to_owned(),
            direction: "read".to_owned(),
            ours_bytes,
            // Beside the bytes of the job, which are more than those.
            device_bytes: ours_bytes + 3 * 20_480 * (1 << 20),
        };
        let (job, text) = (Some(job.name.clone()), kind.to_string());
        record.warnings.push(Warning { job, kind, text });
    }
    record
}

/// A run of 200 ms may have the requested path, and proves little else.
#[test]
fn a_run_that_is_too_short_is_no_run_without_a_note() {
    let mut record = run("host", 1 << 20, 1, false, 1.0);
    let kind = WarningKind::RunTooShort {
        elapsed_ns: 200_000_000,
        ios: 480,
        of_files: false,
        of_bytes: false,
        bytes_of: None,
    };
    let text = kind.to_string();
    record.warnings.push(Warning { job: Some(record.plan.jobs[0].name.clone()), kind, text });
    record.jobs[0].others_cpu_unknown = Some("the run was too short".to_owned());
    let note = "Note: too short for its rate or percentiles: the job; unknown whether others used \
                the CPUs in the job.";
    let set = set(vec![record]);
    assert!(sentences(&set).contains(note), "{}", sentences(&set));
    let page = render("markdown", &set);
    assert!(page.contains(note) && !page.contains("All bytes took"), "{page}");
    let row = page.lines().find(|line| line.starts_with("| run-0 |")).unwrap();
    assert!(row.contains("| too short |"), "{row}");
    assert!(page.contains("; too short, for its rate or percentiles; "), "{page}");
    // One screen has it before the figures in words, not among warnings below.
    let mut quick = records::host_quick();
    let warning = set.members[0].record.warnings[0].clone();
    let names: Vec<String> = quick.plan.jobs.iter().map(|job| job.name.clone()).collect();
    for (jobs, words) in [(1, names[0].as_str()), (names.len(), "all 4 jobs")] {
        quick.warnings.clear();
        for name in names.iter().take(jobs) {
            quick.warnings.push(Warning { job: Some(name.clone()), ..warning.clone() });
        }
        let text = (gpuio_report::find("summary").unwrap().render)(&quick, 120, Show::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = format!("Too short for a rate or percentiles: {words}. [run_too_short] ");
        assert!(text.contains(&line), "{text}");
        assert_eq!(text.contains("Your storage delivers"), jobs == 1, "{text}");
        assert!(text.contains("2.00 GiB/s (1M reads)") && text.contains("; too short to say"));
        assert_eq!(text.matches("run_too_short").count(), 1, "{text}");
    }
}

/// The summary in one line of single spaces.
fn summary(record: &Record) -> String {
    let text = (gpuio_report::find("summary").unwrap().render)(record, 120, Show::default());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first job of the quick run, alone.
fn one_quick_job() -> Record {
    let mut record = records::host_quick();
    record.plan.jobs.truncate(1);
    record.jobs.truncate(1);
    record
}

/// A run that shows less never reads better: its sentence is about its I/Os alone.
#[test]
fn few_ios_say_nothing_of_the_storage() {
    let short = |elapsed_ns, ios| {
        let mut record = one_quick_job();
        let kind = WarningKind::RunTooShort {
            elapsed_ns,
            ios,
            of_files: false,
            of_bytes: false,
            bytes_of: None,
        };
        let (job, text) = (Some(record.plan.jobs[0].name.clone()), kind.to_string());
        record.warnings.push(Warning { job, kind, text });
        record
    };
    for (elapsed_ns, ios, few) in
        [(858_000, 16, "16 I/Os in 858 µs"), (1_600_000_000, 1, "1 I/O in 1.60 s")]
    {
        let record = short(elapsed_ns, ios);
        let text = summary(&record);
        let words =
            format!("{few}: 2.00 GiB/s (1M reads); too short to say what your storage delivers.");
        assert!(text.contains(&words) && !text.contains("Your storage"), "{text}");
        let page = sentences(&set(vec![record]));
        let first = format!("Too short to say what the storage delivers ({few}). host, ");
        assert!(page.starts_with(&first), "{page}");
    }
    // Enough for the rate, and not for the highest percentiles.
    assert!(summary(&short(10_000_000_000, 320)).contains("Your storage delivers 2.00 GiB/s"));
    let mut unknown = one_quick_job();
    unknown.jobs[0].others_cpu_unknown = Some("not counted".to_owned());
    let words = "Your storage delivered to gpuio 2.00 GiB/s (1M reads): whether others used the \
                 CPUs is unknown.";
    assert!(summary(&unknown).contains(words), "{}", summary(&unknown));
}

/// One reason for each verdict, and no rate of storage without one in which it moved the bytes.
#[test]
fn a_rate_that_no_storage_served_names_its_reason() {
    let of = |source: Source, change: fn(&mut Record)| {
        let mut record = one_quick_job();
        record.jobs[0].proof.as_mut().unwrap().verdict.source = source;
        change(&mut record);
        let set = set(vec![record.clone()]);
        let cell = render("markdown", &set).contains("; storage not measured |");
        (summary(&record), sentences(&set), cell)
    };
    type Change = fn(&mut Record);
    let rows: [(Source, Change, &str); 6] = [
        (Source::PageCache, |_| (), "the page cache served the loads"),
        (Source::Holes, |_| (), "no device holds the bytes (holes, or never written)"),
        (Source::Mixed, |_| (), "storage moved only a part of the bytes"),
        (Source::Unknown, |_| (), "it is not known how many of the bytes it moved"),
        (
            Source::Unknown,
            |record| record.plan.jobs[0].engine.actual = "null".to_owned(),
            "engine null moves no bytes",
        ),
        (
            Source::PageCache,
            |record| {
                for place in &mut record.storage {
                    place.mount.as_mut().unwrap().fs_type = "tmpfs".to_owned();
                }
            },
            "the files are in memory (tmpfs)",
        ),
    ];
    for (nth, (source, change, why)) in rows.into_iter().enumerate() {
        let (text, page, cell) = of(source, change);
        let words = format!("The rate of your storage was not measured: {why}.");
        assert!(text.contains(&words) && !text.contains("Your storage"), "{text}");
        // A path that is not proved is a note of its own.
        let first = format!("Storage not measured: {why}. host, ");
        assert_eq!((page.starts_with(&first), cell), (nth != 3, nth != 3), "{page}");
    }
}

#[test]
fn the_page_cache_is_not_bypassed_where_it_served_the_bytes() {
    let mut record = one_quick_job();
    record.jobs[0].direct_actual = DirectMode::Direct;
    record.jobs[0].proof.as_mut().unwrap().verdict.source = Source::PageCache;
    let cached = render("markdown", &set(vec![record.clone()]));
    assert!(cached.contains("not bypassed, though files had O\\_DIRECT, in all jobs"), "{cached}");
    record.jobs[0].engine[0].actual = "null".to_owned();
    let null = render("markdown", &set(vec![record]));
    assert!(null.contains("not involved (engine null moves no bytes) in all jobs"), "{null}");
}

/// Rates under injected faults, and those of a run that errors ended, are none of the storage's.
#[test]
fn rates_with_faults_say_so() {
    let mut record = one_quick_job();
    record.plan.jobs[0].inject = Some("short=5%".to_owned());
    let faults = "Your storage delivered to gpuio 2.00 GiB/s (1M reads): with faults that gpuio \
                  injected.";
    assert!(summary(&record).contains(faults), "{}", summary(&record));
    let page = sentences(&set(vec![record.clone()]));
    assert!(page.contains("Note: gpuio injected faults in the job."), "{page}");
    record.plan.jobs[0].inject = None;
    record.jobs[0].failed = 1001;
    record.ended = EndedHow::Failed;
    let failed = "In the part that ran: Your storage delivered to gpuio 2.00 GiB/s (1M reads): \
                  without the I/Os that failed.";
    assert!(summary(&record).contains(failed), "{}", summary(&record));
}

/// Rates beside other programs are not those of the storage, wherever they stand.
#[test]
fn rates_beside_others_are_never_those_of_the_storage() {
    let words = "other programs moved 75 % of the drive's bytes";
    let bytes = |record: &mut Record| {
        for job in &mut record.jobs {
            job.read.bytes = 20_480 * (1 << 20);
            job.write.bytes = 0;
        }
    };
    let mut one = run("host", 1 << 20, 1, false, 1.0);
    bytes(&mut one);
    let quiet = set(vec![one.clone()]);
    assert!(sentences(&quiet).contains("All bytes took the requested path."));
    let page = render("html", &quiet);
    assert!(!page.contains("Disturbed") && !page.contains("data-key=\"disturbed\""), "{page}");
    assert!(gpuio_report::gdsio::disturbances(&one).is_empty());
    let line = gpuio_report::gdsio::disturbances(&disturbed(one.clone()));
    assert_eq!(line, [format!("# disturbed: job: {words}")]);
    let loud = set(vec![disturbed(one.clone())]);
    let note = format!("Note: the rate is not that of the storage alone in the job ({words}).");
    assert!(sentences(&loud).contains(&note), "{}", sentences(&loud));
    let escaped = format!("Disturbed: {words}.").replace('\'', "&#39;");
    assert!(render("html", &loud).replace("&#x27;", "&#39;").contains(&escaped));
    assert!(
        render("html", &loud).contains("<td>others: drive 75 %</td>"),
        "the row in the list of all"
    );
    let two = set(vec![disturbed(one.clone()), one]);
    assert!(sentences(&two).contains(&format!("in 1 of 2 jobs ({words})")), "{}", sentences(&two));
    let page = render("markdown", &two);
    assert!(page.contains("Disturbed in 1 of 2 runs; at worst, other programs"), "{page}");

    // Where it holds of all rows, one sentence says it of all.
    let both = ["host", "staged"].map(|path| {
        let mut run = run(path, 1 << 20, 1, false, 1.0);
        bytes(&mut run);
        disturbed(run)
    });
    let page = render("markdown", &set(both.to_vec()));
    let sentence = "All 2 results were disturbed; at worst, other programs moved 75 %";
    assert!(page.contains(sentence) && !page.contains("Disturbed"), "{page}");

    let summary = gpuio_report::find("summary").unwrap();
    let shown = |record: &Record| {
        let text = (summary.render)(record, 120, Show::default());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut quick = records::host_quick();
    quick.plan.jobs.truncate(1);
    quick.jobs.truncate(1);
    bytes(&mut quick);
    assert!(shown(&quick).contains("Your storage delivers 2.00 GiB/s (1M reads)."));
    let mut loud = disturbed(quick);
    let sentence = format!(
        "Your storage delivered to gpuio 2.00 GiB/s (1M reads): not the rate of the storage \
         alone. Disturbed: {words}."
    );
    assert!(shown(&loud).contains(&sentence), "{}", shown(&loud));
    loud.ended = EndedHow::Interrupted;
    let sentence = format!("In the part that ran: {sentence}");
    assert!(shown(&loud).contains(&sentence), "{}", shown(&loud));
    // To a GPU as well, but not where the page cache served it.
    let to_gpu = shown(&disturbed(records::ceilings()));
    assert!(to_gpu.contains("GiB/s from storage. Disturbed in all 2 jobs: at worst"), "{to_gpu}");
    assert_eq!(to_gpu.matches("moved").count(), 1, "{to_gpu}");
    let cached = shown(&disturbed(records::software()));
    assert!(!cached.contains("Disturbed"), "{cached}");
}

/// The drive's bytes are less than a job's where the page cache served most of those.
#[test]
fn the_share_of_others_is_of_what_the_drive_moved() {
    const MIB: u64 = 1 << 20;
    let mut record = run("host", MIB, 1, false, 1.0);
    let kind = WarningKind::OtherTraffic {
        device: "vda".to_owned(),
        direction: "read".to_owned(),
        ours_bytes: 256 * MIB,
        device_bytes: 964 * MIB,
    };
    let (name, text) = (record.plan.jobs[0].name.clone(), kind.to_string());
    record.warnings.push(Warning { job: Some(name), kind, text });
    let said = |mode, wrote| {
        let mut record = record.clone();
        let job = &mut record.jobs[0];
        (job.direct_actual, job.read.bytes, job.write.bytes) = (mode, 17 << 30, 0);
        job.cache.process_read_bytes = Some(256 * MIB);
        job.cache.process_write_bytes = Some(wrote);
        gpuio_report::gdsio::disturbances(&record).concat()
    };
    let moved = |percent| format!("other programs moved {percent} % of the drive's bytes");
    let cached = said(DirectMode::Buffered, 0);
    assert!(cached.ends_with(&moved("73")), "{cached}");
    let both = said(DirectMode::Buffered, 964 * MIB);
    assert!(both.ends_with(&moved("37")), "what it wrote is the drive's too: {both}");
    let direct = said(DirectMode::Direct, 0);
    assert!(direct.ends_with(&moved("3.9")), "{direct}");
}

/// Where others had the processors, a rate is not the storage's either.
#[test]
fn rates_without_processors_are_never_those_of_the_storage() {
    let starved = |mut record: Record, programs_ns| {
        let kind = WarningKind::OtherCpuTime {
            cpus: 2,
            all_ns: 100,
            ours_ns: 20,
            programs_ns,
            kernel_ns: 30,
            stolen_ns: 0,
        };
        let (job, text) = (Some(record.plan.jobs[0].name.clone()), kind.to_string());
        record.warnings.push(Warning { job, kind, text });
        record
    };
    let mut quick = records::host_quick();
    quick.plan.jobs.truncate(1);
    quick.jobs.truncate(1);
    let summary = gpuio_report::find("summary").unwrap();
    let shown = |record: &Record| {
        let text = (summary.render)(record, 120, Show::default());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let words = "): not the rate of the storage alone. Disturbed: other programs took 50 % of the \
                 CPUs' time, the kernel for them or for storage 30 %.";
    let loud = shown(&starved(quick.clone(), 50));
    assert!(loud.contains(words) && loud.contains("delivered to gpuio"), "{loud}");
    // Said once: no warning repeats it.
    assert!(!loud.contains("[other_cpu_time]"), "{loud}");
    let kernel = shown(&starved(quick.clone(), 20));
    assert!(kernel.contains(": other programs took 20 % of the CPUs' time, the "), "{kernel}");
    // Those that it concerns are named.
    let several = shown(&starved(records::host_quick(), 50));
    let name = &records::host_quick().plan.jobs[0].name;
    assert!(several.contains(&format!("Disturbed in {name}: other programs took")), "{several}");
    assert!(several.contains("(1M reads, disturbed)"), "{several}");
    let mut both = set(vec![starved(disturbed(quick.clone()), 40), starved(quick, 50)]);
    both.members[1].record.jobs[0].read.bytes_per_s /= 2.0;
    // The worst of each kind, though no run has both.
    let words = "of the drive's bytes; other programs took 50 % of the CPUs' ";
    assert!(sentences(&both).contains(words), "{}", sentences(&both));
    let page = render("html", &both);
    assert!(page.contains(" %, CPUs 70 %</td>") && page.contains("others: CPUs 80 %</td>"));
}

/// A percentile of some runs alone would stand below one of all: no row has it.
#[test]
fn a_percentile_that_some_runs_lack_is_absent() {
    let mut runs = [1.0, 1.1, 1.2].map(|faster| run("host", 4096, 1, false, faster)).to_vec();
    let all = render("markdown", &set(runs.clone()));
    let latency = runs[1].jobs[0].read.latency.as_mut().unwrap();
    assert!(latency.total.p99_ns.take().is_some());
    let some = render("markdown", &set(runs));
    let p99 = |page: &str| {
        let mut rows = page.lines().filter(|line| line.starts_with("| "));
        let cells = |line: &str| line.split('|').map(str::trim).map(str::to_owned).collect();
        let (heads, row): (Vec<String>, Vec<String>) = rows
            .find(|line| line.contains(" p99 "))
            .map(|heads| (cells(heads), cells(rows.find(|line| line.contains("4K")).unwrap())))
            .unwrap();
        row[heads.iter().position(|head| head == "p99").unwrap()].clone()
    };
    assert!(p99(&all).ends_with("s"), "{all}");
    assert_eq!(p99(&some), "-", "{some}");
}

/// The same set with all jobs on a GPU.
fn on_gpu(mut set: Set) -> Set {
    let gpus = records::staged_in_trouble().plan.jobs[0].gpus.clone();
    for member in &mut set.members {
        member.record.plan.jobs[0].gpus.clone_from(&gpus);
        member.record.plan.software_gpu = false;
    }
    set
}

/// Three runs of each path and block with these factors of the rate.
fn three(factors: &[(&str, [f64; 3])]) -> Set {
    let of = |(path, factors): &(&'static str, [f64; 3])| {
        let path = *path;
        factors.map(|faster| run(path, 4096, 1, false, faster))
    };
    let factors: Vec<(&'static str, [f64; 3])> = factors
        .iter()
        .map(|(path, factors)| (if *path == "gather" { "gather" } else { "staged" }, *factors))
        .collect();
    on_gpu(set(factors.iter().flat_map(of).collect()))
}

#[test]
fn the_fastest_path_is_named_only_if_intervals_are_apart() {
    let clear = sentences(&three(&[("gather", [4.0, 4.1, 4.05]), ("staged", [1.0, 1.1, 1.05])]));
    assert!(clear.contains("At randread 4K, 2 threads: gather "), "{clear}");
    assert!(clear.contains("at depth 1 (3.9 times)"), "{clear}");
    let noise = sentences(&three(&[("gather", [1.0, 3.0, 2.0]), ("staged", [1.1, 2.9, 1.9])]));
    assert!(noise.contains("At no load do the 95 % intervals of two paths lie apart"), "{noise}");
    // A path whose bytes came out of the page cache instead wins nothing.
    let mut misled = three(&[("gather", [4.0, 4.1, 4.05]), ("staged", [1.0, 1.1, 1.05])]);
    for member in &mut misled.members[..3] {
        let proof = member.record.jobs[0].proof.as_mut().unwrap();
        proof.as_requested = false;
        (proof.verdict.route, proof.verdict.source) = (Route::HostMemory, Source::PageCache);
    }
    let cached = sentences(&misled);
    assert!(!cached.contains("gather") || cached.starts_with("2 loads, from "), "{cached}");
    // Two runs of each have no interval, which is said.
    let few = sentences(&on_gpu(grid()));
    assert!(few.contains("of 6 loads (medians; intervals need three runs)"), "{few}");
}

#[test]
fn one_load_is_its_rate_and_others_are_a_range() {
    let one = sentences(&set(vec![run("host", 4096, 1, false, 1.0)]));
    assert!(one.starts_with("host, randread 4K, 2 threads at depth 1: "), "{one}");
    assert!(one.contains("(one run)") && one.contains(" IOPS, p50 "), "{one}");
    let two =
        sentences(&set(vec![run("host", 4096, 1, false, 1.0), run("host", 65536, 1, false, 2.0)]));
    assert!(two.starts_with("2 loads, from ") && two.contains("randread 64K"), "{two}");
    assert!(!two.contains(" times"), "of unlike loads there is no ratio: {two}");
    let deep = run("host", 4096, 4, false, 2.0);
    let two = sentences(&set(vec![run("host", 4096, 1, false, 1.0), deep]));
    assert!(two.contains("): 2.0 times (an interval needs three runs)."), "{two}");
    let none = sentences(&set(Vec::new()));
    assert!(none.starts_with("No job of these records has a result."), "{none}");
}

#[test]
fn what_went_wrong_is_in_the_first_words() {
    let mut wrong = set(vec![run("gds", 4096, 1, false, 1.0), run("gds", 4096, 1, false, 1.0)]);
    let job = &mut wrong.members[1].record.jobs[0];
    job.read.failed = 3;
    job.ended = gpuio_record::EndedHow::Interrupted;
    let text = sentences(&wrong);
    assert!(text.contains("Note: not complete: 1 of 2 jobs; failed I/Os in 1 of 2 jobs"), "{text}");
}

/// The picture has each path's line, round ticks, and one load.
#[test]
fn the_first_plot_is_of_one_load_with_ticks_of_round_rates() {
    let picture = render("svg", &grid());
    assert_eq!(picture.matches("<polyline").count(), 2, "{picture}");
    assert_eq!(picture.matches("<circle").count(), 6, "three blocks of two paths: {picture}");
    // The picture has no rows below it, and the page has.
    assert!(!picture.contains("below"), "{picture}");
    assert!(render("html", &grid()).contains("rows of other loads are below."));
    let title = "Throughput against block size: randread, 2 threads, depth 1";
    let heading = format!("fill=\"#1b1f23\">{title}</text>");
    assert!(picture.contains(&heading), "{picture}");
    assert!(picture.contains("rows of other loads"), "{picture}");
    assert!(picture.contains("All bytes took the requested path."), "{picture}");
    assert!(!picture.contains(".00 GiB/s</text>") && !picture.contains("NaN"), "{picture}");
    let chosen = render("svg", &automatic());
    assert!(chosen.contains("automatic depth</text>"), "{chosen}");
    // One path has one depth throughout, the other another at each block: its marks stand alone.
    assert_eq!(chosen.matches("<polyline").count(), 1, "{chosen}");
    assert_eq!(chosen.matches("<circle").count(), 6, "{chosen}");
    let words = "Marks that also differ in depth per thread are not joined (depths are automatic).";
    assert!(render("html", &automatic()).contains(words));
    let bars = render(
        "svg",
        &set(vec![run("gather", 4096, 1, false, 1.0), run("gds", 4096, 1, false, 1.0)]),
    );
    assert_eq!(bars.matches("rx=\"2\"").count(), 2, "{bars}");
    assert!(bars.contains("(n = 1)") && !bars.contains("<path"), "{bars}");
    // The spread of repeats is drawn, and of a single run said to be unknown.
    let repeats = [1.0, 1.5].map(|faster| run("gather", 4096, 1, false, faster));
    let [one, other] = [run("gds", 4096, 1, false, 1.0), run("gds", 4096, 1, false, 2.0)];
    let mixed = [repeats.to_vec(), vec![one.clone()]].concat();
    let bars = render("svg", &set(mixed));
    assert_eq!(bars.matches("<path").count(), 1, "{bars}");
    assert!(bars.contains("one run (n = 1) has an unknown spread."), "{bars}");
    let bars = render("svg", &set([repeats.to_vec(), vec![one, other]].concat()));
    assert_eq!(bars.matches("<path").count(), 2, "{bars}");
    assert!(bars.contains("whiskers show the") && !bars.contains("n = 1"), "{bars}");
    let mut software = grid();
    software.members[0].record.plan.software_gpu = true;
    let software = render("svg", &software);
    assert!(software.contains("Software GPU: these runs used no hardware GPU."), "{software}");
    let none = render("svg", &Set::default());
    assert!(none.contains("No plot: no job of these records has a result."), "{none}");
}

/// Jobs of one load and different names are no repeats of each other, whichever records have them.
#[test]
fn rows_of_different_jobs_stay_apart() {
    let named = |name: &str, faster| {
        let mut record = run("host", 4096, 1, false, faster);
        record.plan.jobs[0].name = name.to_owned();
        record.jobs[0].name = name.to_owned();
        record
    };
    let apart = set(vec![named("restore", 1.0), named("restore#2", 3.0), named("restore", 1.1)]);
    let page = render("markdown", &apart);
    assert!(page.contains("| restore: randread 4K, 2 threads at depth 1 | host | 2 |"), "{page}");
    assert!(page.contains("restore\\#2: randread 4K, 2 threads at depth 1 | host | 1 |"), "{page}");
    let words = "(restore: host, randread 4K, 2 threads at depth 1) to ";
    assert!(sentences(&apart).contains(words), "{}", sentences(&apart));
    let bars = render("svg", &apart);
    assert_eq!(bars.matches("rx=\"2\"").count(), 2, "{bars}");
    assert!(bars.contains(", restore#2<"), "{bars}");
}

/// Linear light of a colour `#rrggbb`.
fn linear(colour: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

/// Oklab of a colour as it looks with a deficiency: B. Ottosson, "A perceptual color space" (2020).
fn seen(colour: &str, by: &[[f64; 3]; 3]) -> [f64; 3] {
    let times = |matrix: &[[f64; 3]; 3], v: [f64; 3]| {
        matrix.map(|row| row.iter().zip(v).map(|(factor, value)| factor * value).sum::<f64>())
    };
    let light = times(by, linear(colour)).map(|value| value.clamp(0.0, 1.0));
    let cones = [
        [0.412_221, 0.536_333, 0.051_446],
        [0.211_903, 0.680_700, 0.107_397],
        [0.088_302, 0.281_719, 0.629_979],
    ];
    let lab = [
        [0.210_454, 0.793_618, -0.004_072],
        [1.977_998, -2.428_592, 0.450_594],
        [0.025_904, 0.782_772, -0.808_676],
    ];
    times(&lab, times(&cones, light).map(f64::cbrt))
}

/// Normal sight, and no red or green: G. M. Machado and others, IEEE TVCG 15 (2009), severity 1.
const SIGHTS: [[[f64; 3]; 3]; 3] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
    [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ],
];

#[test]
fn colours_of_paths_differ_for_every_sight_and_stand_out() {
    let sheet = include_str!("../../assets/page.css");
    let palettes: Vec<Vec<&str>> = sheet
        .split("--p0: ")
        .skip(1)
        .map(|part| {
            let part = part.split('}').next().unwrap();
            part.split(';').take(8).map(|one| &one[one.find('#').unwrap()..][..7]).collect()
        })
        .collect();
    assert_eq!(palettes.len(), 3, "light, dark by the system, dark by choice");
    assert_eq!(palettes[1], palettes[2]);
    for (palette, paper) in palettes.iter().zip(["#f6f7f8", "#1c2126"]) {
        let bright = |colour: &str| {
            let [red, green, blue] = linear(colour);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        };
        for (nth, one) in palette.iter().enumerate() {
            let (a, b) = (bright(one), bright(paper));
            assert!(a.max(b) / a.min(b) >= 2.99, "{one} on {paper}");
            for other in &palette[nth + 1..] {
                for sight in &SIGHTS {
                    let (one, other) = (seen(one, sight), seen(other, sight));
                    let apart: f64 = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!(apart.sqrt() > 0.06, "{palette:?} {one:?} {other:?}");
                }
            }
        }
    }
    // A picture of its own has the light ones, and no variable of a style: most programs that place
    // it in a paper know none.
    let picture = render("svg", &grid());
    assert!(!picture.contains("var("), "{picture}");
    let used = palettes[0].iter().filter(|colour| picture.contains(*colour)).count();
    assert_eq!(used, 2, "a colour for each path");
    assert!(palettes[1].iter().all(|colour| !picture.contains(*colour)));
}

/// A ratio of two requested rates is no finding.
#[test]
fn loads_at_requested_rates_are_not_compared() {
    let paced = |(depth, bytes_per_s): (u32, u64)| {
        let mut record = run("host", 4096, depth, false, 1.0);
        let arrivals = Arrivals::Steady;
        record.plan.jobs[0].pacing =
            Some(Pacing { bytes_per_s: Some(bytes_per_s), iops: None, arrivals });
        record
    };
    let mut set = set([(1, 8 << 20), (2, 20 << 20)].into_iter().map(paced).collect());
    let text = sentences(&set);
    let start = "All 2 loads kept their requested rates: ";
    assert!(text.contains(start) && text.contains(", p99 "), "{text}");
    assert!(!text.contains("times") && !text.contains("% more"), "{text}");
    let kind = WarningKind::RateNotReached { reached: 0.5 };
    let text = kind.to_string();
    set.members[1].record.warnings.push(Warning { job: None, kind, text });
    let text = sentences(&set);
    assert!(text.contains("1 of 2 loads kept their requested rates: "), "{text}");
    assert_eq!(text.matches(", not kept").count(), 1, "{text}");
}

/// Files that stay are named, as in the details.
#[test]
fn files_that_stay_are_named_with_their_place() {
    let mut record = records::host_quick();
    record.setup.laid_out_bytes = 512 << 20;
    for job in &mut record.plan.jobs {
        (job.directory, job.keep) = (Some("/mnt/d".to_owned()), true);
    }
    let of = |name: &str, record: &Record| {
        let format = gpuio_report::find(name).unwrap();
        (format.render)(record, 120, Show::default())
    };
    let screen = |record: &Record| of("summary", record);
    let words = "Data files: 2 files with 2.00 GiB stay in /data";
    assert!(screen(&record).contains(words), "{}", screen(&record));
    let details = of("text", &record);
    assert!(details.contains("(512 MiB written, kept in /mnt/d)"), "{details}");
    record.plan.jobs.iter_mut().for_each(|job| job.keep = false);
    assert!(!screen(&record).contains("Data files"), "{}", screen(&record));
    // Those of an earlier run stay whatever this one keeps.
    record.setup.laid_out_bytes = 0;
    record.plan.jobs[0].targets[1].guard = gpuio_record::GuardNote::Ours;
    let words = "Data files: 1 file with 1.00 GiB stays in /data";
    assert!(screen(&record).contains(words), "{}", screen(&record));
}

/// Two jobs of one load and path are two rows of one screen, each with its job.
#[test]
fn rows_of_one_path_say_which_job_they_are_of() {
    let summary = |jobs: &[&str]| {
        let jobs = jobs.iter().map(|name| records::job(name)).collect();
        let record = records::record(jobs);
        (gpuio_report::find("summary").unwrap().render)(&record, 120, Show::default())
    };
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.starts_with("host"));
        rows.map(|row| row.split("  ").next().unwrap_or_default().to_owned()).collect()
    };
    let two = summary(&["tensors", "whole files"]);
    assert_eq!(rows(&two), ["host (tensors)", "host (whole files)"], "{two}");
    assert_eq!(rows(&summary(&["tensors"])), ["host"]);
}
