//! Rules that hold for the text and plan formats whatever the record.

use crate::records;

use gpuio_base::stat::{Histogram, Percentile};
use gpuio_record::{
    EndedHow, Expected, FanOutResult, FlushPlan, GpuResult, JobExpected, Record, SegmentBytes,
    ThinkPlan, TimeSpan, Towards, VerifyOutcome, ViaResult, Warning, WarningKind,
};
use gpuio_report::format::TEXT_WIDTH;
use gpuio_report::format::text::Show;
use gpuio_report::set::{Member, Set, find_set_format};
use gpuio_report::{plan_text, render_text, render_text_with_evidence};

/// Lines that hold results: rows of tables that name a job or a total, and the workers' line.
fn result_lines(text: &str) -> Vec<&str> {
    let figure = |line: &&str| line.contains("iB/s ") || line.contains("µs") || line.contains("ms");
    text.lines()
        .filter(|line| {
            ["try ", "job-", "a-job", "total,", "group 0 "]
                .iter()
                .any(|name| line.starts_with(name))
        })
        .filter(figure)
        .chain(text.lines().filter(|line| line.starts_with("workers done")))
        .collect()
}

/// A line that nobody can take for hardware's when it stands alone.
fn is_marked(line: &str) -> bool {
    ["software GPU", "soft:", "soft GPU"].iter().any(|mark| line.contains(mark))
}

#[test]
fn a_software_gpu_is_named_on_top_and_on_every_line_of_results() {
    let mut many = records::many_jobs();
    many.plan.software_gpu = true;
    let gpus = records::software().plan.jobs[0].gpus.clone();
    many.plan.jobs.iter_mut().for_each(|job| job.gpus.clone_from(&gpus));
    many.jobs[11].name = "job-11".to_owned();
    many.plan.jobs[11].name = "job-11".to_owned();
    for (record, least) in [(records::software(), 3), (many, 16)] {
        for width in [70, 80, 100, 120, 250] {
            let text = render_text(&record, width);
            assert!(text.starts_with("SOFTWARE GPU: "), "{text}");
            let lines = result_lines(&text);
            assert!(lines.len() >= least, "{width}: {text}");
            for line in lines {
                assert!(is_marked(line), "{width}: {line}");
            }
            assert!(text.matches("checked in").count() <= text.matches("[software GPU]").count());
        }
    }
    let hardware = render_text(&records::host_quick(), 120);
    assert!(!hardware.lines().any(is_marked), "{hardware}");
}

/// A path without a GPU in a run of several paths is what it is without the software GPU.
#[test]
fn a_job_without_a_gpu_is_not_marked_as_of_the_software_gpu() {
    let mut record = records::many_jobs();
    record.plan.software_gpu = true;
    record.plan.jobs[0].gpus.clone_from(&records::software().plan.jobs[0].gpus);
    let names: Vec<&str> = record.plan.jobs.iter().map(|job| job.name.as_str()).collect();
    let text = render_text(&record, 250);
    let marked: Vec<&str> =
        text.lines().filter(|line| is_marked(line) && !line.starts_with("SOFTWARE GPU")).collect();
    let of =
        |name: &str| marked.iter().any(|line| line.split([' ', ':', ',']).any(|it| it == name));
    assert!(of(names[0]), "{text}");
    assert!(!names[1..].iter().any(|name| of(name)), "{text}");
    let render = gpuio_report::find("csv").unwrap().render;
    let csv = render(&record, TEXT_WIDTH, Show::default());
    let column = csv.lines().next().unwrap().split(',').position(|it| it == "gpu_software");
    let cells: Vec<&str> =
        csv.lines().skip(1).map(|line| line.split(',').nth(column.unwrap()).unwrap()).collect();
    assert_eq!(cells[0], "1", "{csv}");
    assert_eq!(cells.last(), Some(&"0"), "{csv}");
}

#[test]
fn a_run_that_did_not_end_says_so_before_any_figure() {
    let mut record = records::many_jobs();
    record.ended = EndedHow::Unfinished;
    let text = |record: &Record| {
        let text = render_text(record, 120);
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
        assert!(at("UNFINISHED: ") < at("throughput"), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(text(&record).contains("it ended after its last job;"));
    record.jobs.pop();
    let last = record.plan.jobs.last().unwrap().clone();
    let place =
        format!("it ended before or during {} (path {});", last.name, last.path.choice.actual);
    let said = text(&record);
    let not_run = format!("NOT RUN: {} (or not to its end)", last.name);
    assert!(said.contains(&place) && said.contains(&not_run), "{said}");
}

#[test]
fn choices_of_auto_stand_with_their_reason() {
    let mut record = records::many_jobs();
    assert!(!render_text(&record, 120).contains("auto →"));
    for (nth, job) in record.plan.jobs.iter_mut().enumerate() {
        job.path.choice.requested = "auto".to_owned();
        job.path.choice.actual = if nth == 1 { "gather" } else { "staged" }.to_owned();
        job.path.choice.why = Some("of its blocks".to_owned());
    }
    let names: Vec<String> = record.plan.jobs.iter().map(|job| job.name.clone()).collect();
    let text = render_text(&record, 120);
    let line = format!("path:    {}: auto → gather: of its blocks", names[1]);
    assert!(text.lines().any(|said| said == line), "{text}");
    assert_eq!(text.matches("auto → staged: of its blocks").count(), 1, "{text}");
    record.plan.jobs[1].path.choice.actual = "staged".to_owned();
    let text = render_text(&record, 120);
    assert!(text.lines().any(|said| said == "path:    auto → staged: of its blocks"), "{text}");
}

#[test]
fn bytes_of_several_gpus_and_by_way_of_one_are_reported_and_marked() {
    let mut record = records::software();
    let alone = render_text(&record, 100);
    assert!(!alone.contains("by GPU:") && !alone.contains("by way of"), "{alone}");
    let part = |index, bytes, ios| GpuResult { index, bytes, ios };
    record.jobs[0].gpus = vec![part(0, 3 << 20, 48), part(2, 1 << 20, 16)];
    let read = SegmentBytes { host_near_bytes: 4 << 20, near_far_bytes: 3 << 20 };
    record.jobs[0].via =
        Some(ViaResult { gpu: 1, through_host: true, read, write: SegmentBytes::default() });
    record.jobs[0].fan_out = Some(FanOutResult {
        gpus: 4,
        placed_bytes: 16 << 20,
        placed_bytes_per_s: 2.0 * 1_073_741_824.0,
        from_host_bytes: 4 << 20,
        between_gpus_bytes: 12 << 20,
        through_host: true,
    });
    let text = render_text(&record, 300);
    for line in [
        "16.0 MiB placed in 4 GPUs at 2.00 GiB/s; ramp included, 4.00 MiB from the host and 12.0 \
         MiB from GPU to GPU; copies between the GPUs went through host memory",
        "GPU 0 3.00 MiB in 48 I/Os, GPU 2 1.00 MiB in 16 I/Os",
        "4.00 MiB from the host to GPU 1, 3.00 MiB from there to the destination; copies \
         between the GPUs went through host memory",
    ] {
        let line = text.lines().find(|found| found.contains(line)).expect(line);
        assert!(is_marked(line), "{line}");
    }
}

#[test]
fn a_run_of_twelve_jobs_is_one_table_at_120_columns() {
    let quick = render_text(&records::host_quick(), 120);
    let many = render_text(&records::many_jobs(), 120);
    for text in [quick, many] {
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("job ")).collect();
        assert!(heads[0].contains("throughput") && heads[0].contains("p99.9"), "{text}");
        assert_eq!(text.matches("throughput").count(), 1, "{text}");
    }
    let narrow = render_text(&records::host_quick(), 80);
    let heads: Vec<&str> = narrow.lines().filter(|line| line.starts_with("job ")).collect();
    assert!(!heads[0].contains("p50") && heads[1].contains("p99.9"), "{narrow}");
}

#[test]
fn a_path_that_is_not_here_has_one_row_and_its_reason_stands_once() {
    for width in [80, 120] {
        let text = render_text(&records::host_quick(), width);
        for path in ["staged", "cached"] {
            let row = |line: &&str| line.starts_with("- ") && line.contains(path);
            let rows: Vec<&str> = text.lines().filter(row).collect();
            assert_eq!(rows.len(), 1, "{text}");
            assert!(rows[0].ends_with("not here"), "{text}");
        }
        assert_eq!(text.matches("libcuda.so.1").count(), 1, "{text}");
        assert!(text.contains("not here: staged, cached: no CUDA driver"), "{text}");
    }
}

#[test]
fn an_engine_that_stepped_down_is_marked_and_no_other() {
    let text = render_text(&records::staged_in_trouble(), 120);
    let row = |job: &str| text.lines().find(|line| line.starts_with(job)).unwrap();
    assert!(row("train ").contains(" io_uring* "), "{text}");
    assert!(row("to storage").contains(" io_uring ") && !row("to storage").contains('*'));
    let both = "engines: io_uring (fixed buffers): train; io_uring: to storage, \"fast\"";
    assert!(text.contains(both), "{text}");
    assert!(text.contains("\n*        not everything"), "{text}");
    let fine = render_text(&records::host_quick(), 120);
    assert!(!fine.contains('*'), "{fine}");
    assert!(fine.contains("\nengines: io_uring (fixed buffers, fixed files)\n"), "{fine}");
}

#[test]
fn flushes_have_percentiles_of_all_workers_beside_writes_alone() {
    let mut flushed = gpuio_record::FlushResult::default();
    for worker in 1..=2_u64 {
        let mut times = Histogram::default();
        (0..1000).for_each(|nth| times.record(worker * 1_000_000 + nth));
        let (calls, ns) = (times.count(), times.sum());
        flushed.add(&gpuio_record::FlushResult { calls, ns, latency: times.summary() });
    }
    let mut record = records::staged_in_trouble();
    record.plan.jobs[1].flush =
        Some(FlushPlan { every_ios: Some(1), data_only: true, at_end: false, at_close: false });
    record.jobs[1].flushes = Some(flushed);
    let text = render_text(&record, 400).split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "2,000 calls of fdatasync, 1.50 ms each on average, p50 / p99 1.00 ms / 2.00 ms, \
                at most 2.00 ms; in the measured time, outside latencies";
    assert!(text.contains(line), "{text}");
    let csv = gpuio_report::format::csv::render(&record, &Default::default());
    let cells: Vec<Vec<&str>> =
        csv.lines().map(|line| line.rsplit(',').skip(1).take(2).collect()).collect();
    assert_eq!(cells[0], ["flush_p99_ns", "flush_p50_ns"]);
    assert_eq!(cells[1], ["", ""], "a job that flushes nothing");
    assert!(cells[2].iter().all(|cell| cell.parse::<u64>().is_ok()), "{cells:?}");
}

#[test]
fn the_error_that_ended_the_run_is_the_last_of_the_failures() {
    let text = render_text(&records::staged_in_trouble(), 120);
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
    let error = place("stopped by an error: job 'never-ran': GPU 1 was lost");
    assert!(place("7 I/Os failed") < error && error < place("verification:"));
    assert!(!render_text(&records::host_quick(), 120).contains("stopped by"));
}

/// The mean in flight is that of Little's law, with the setting that keeps the others back.
#[test]
fn a_depth_that_is_not_reached_is_said() {
    let mut record = records::host_quick();
    let plan = &mut record.plan.jobs[0];
    (plan.threads, plan.depth) = (1, 16);
    plan.think = Some(ThinkPlan { pause_ns: 1_000_000, spin_ns: 0, every_ios: 1 });
    let read = &mut record.jobs[0].read;
    read.iops = 960.0;
    read.latency.as_mut().unwrap().total.mean_ns = 500_000.0;
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = flat(render_text(&record, 200));
    let line = "0.48 of 16 on average (IOPS x mean latency): thinktime pauses after each 1 I/O; \
                these are no figures of depth 16";
    assert!(text.contains(line), "{text}");
    let summary = gpuio_report::find("summary").unwrap();
    let summary = flat((summary.render)(&record, 200, Show::default()));
    assert!(summary.contains("on average only 0.48 of 16, "), "{summary}");
    record.jobs[0].read.iops = 32_000.0;
    assert!(!flat(render_text(&record, 200)).contains("of depth 16"));
}

/// A list of one job takes no percentile of another job away.
#[test]
fn percentiles_of_a_table_are_those_of_all_jobs() {
    let mut record = records::staged_in_trouble();
    assert!(record.plan.jobs.len() > 1);
    let heads = |record: &Record| {
        let text = render_text(record, 300);
        let head = text.lines().find(|line| line.contains("p50")).unwrap();
        head.split_whitespace().filter(|word| word.starts_with('p')).map(str::to_owned).collect()
    };
    let usual: Vec<String> = heads(&record);
    record.plan.jobs[0].percentiles = vec![Percentile::hundredths(9_500)];
    let both: Vec<String> = heads(&record);
    assert!(usual.iter().all(|head| both.contains(head)), "{usual:?} {both:?}");
    assert!(both.contains(&"p95".to_owned()) && both.contains(&"p99.9".to_owned()), "{both:?}");
    for job in &mut record.plan.jobs {
        job.percentiles = vec![Percentile::MEDIAN, Percentile::hundredths(9_500)];
    }
    let own: Vec<String> = heads(&record);
    assert!(own.contains(&"p95".to_owned()) && !own.contains(&"p99.9".to_owned()), "{own:?}");
}

/// Rates over a part of a group's time do not stand beside CPUs over all of it.
#[test]
fn a_total_has_one_time() {
    let cpus = |record: &Record| {
        let text = render_text(record, 200);
        let in_row = |line: &str| line.contains("total, group 0") && line.contains("1.65");
        (text.lines().any(in_row), text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let mut record = records::host_quick();
    let total = record.totals.iter_mut().find(|total| total.group == 0).unwrap();
    let all = total.last_done_ns;
    total.common = Some(TimeSpan { begin_ns: 0, end_ns: all });
    assert!(cpus(&record).0);
    record.totals[0].common = Some(TimeSpan { begin_ns: 0, end_ns: all / 2 });
    let (in_row, text) = cpus(&record);
    assert!(!in_row && text.contains("1.65 CPUs were busy over the"), "{text}");
    (record.totals[0].common, record.totals[0].why_no_rate) = (None, Some("none".to_owned()));
    let (in_row, text) = cpus(&record);
    assert!(!in_row && text.contains("has no rate: none; 1.65 CPUs were busy"), "{text}");
}

#[test]
fn right_blocks_are_one_line_and_wrong_ones_have_details() {
    let mut record = records::staged_in_trouble();
    let mut right = record.jobs[0].verify.clone().unwrap();
    right.mismatches.clear();
    (right.bad_blocks, right.bad_words, right.failed) = (0, 0, 0);
    right.complete = true;
    record.jobs[1].verify = Some(right.clone());
    let text = render_text(&record, 120);
    assert!(text.contains("train: 3 BAD BLOCKS, 131,073 wrong 8-byte words; CUT SHORT"), "{text}");
    assert!(text.contains("  the others all right: 16 timed blocks (16.0 MiB) and"), "{text}");
    assert!(text.contains("expected 0x5f3759df00000001"), "{text}");
    // By a checksum only the block is known.
    let wrong = record.jobs[0].verify.as_mut().unwrap();
    let (one, length) = (&mut wrong.mismatches[0], Some(65_536));
    (one.bad_words, one.checksum_of_bytes, one.found_belongs_at) = (0, length, None);
    (one.expected, one.found) = ("0x842e5b2a".to_owned(), "0xd3849e7e".to_owned());
    (wrong.bad_blocks, wrong.bad_places, wrong.bad_words) = (1, Some(1), 0);
    let text = render_text(&record, 400);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "/data/gpuio.0: block at 4096, length 65536: the crc32c in its header is \
                0x842e5b2a, that of its data is 0xd3849e7e: a byte of the block is wrong, which \
                one is not known";
    assert!(text.contains(line) && text.contains("train: 1 BAD BLOCK;"), "{text}");
    record.jobs[0].verify = Some(right);
    let text = render_text(&record, 200);
    let line = "verification: all right: 32 timed blocks (32.0 MiB) and 3,000 blocks (2.93 GiB) \
                afterwards, checked in GPU memory by a kernel\n";
    assert!(text.contains(line), "{text}");
    record.jobs[0].verify = Some(Default::default());
    let text = render_text(&record, 200);
    assert!(text.contains("train: CUT SHORT before the end; no block was checked"), "{text}");
}

fn warn(record: &mut Record, job: Option<&str>, kind: WarningKind) {
    let job = job.map(str::to_owned);
    let text = kind.to_string();
    record.warnings.push(Warning { job, kind, text });
}

#[test]
fn equal_warnings_are_one_paragraph_and_shared_sentences_stand_once() {
    let mut record = records::host_quick();
    record.warnings.clear();
    let split = |mean_request_bytes| WarningKind::SplitByBlockLayer {
        mean_io_bytes: 1 << 20,
        mean_request_bytes,
        device: "sda".to_owned(),
        ahead: false,
    };
    let note = |note: &str| WarningKind::Note { note: note.to_owned() };
    let list = ["seq-read", "seq-write", "rand-read", "rand-mixed"];
    warn(&mut record, Some(list[0]), note("gpu: no use here"));
    warn(&mut record, Some(list[1]), note("thread: always so"));
    for job in list {
        warn(&mut record, Some(job), WarningKind::SyncWrites);
    }
    warn(&mut record, Some(list[0]), split(1 << 17));
    warn(&mut record, Some(list[1]), split(1 << 16));
    warn(&mut record, Some(list[2]), split(1 << 17));
    for _ in 0..3 {
        warn(&mut record, None, WarningKind::SoftwareGpu);
    }
    let text = render_text(&record, 120);
    let begins: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("warning: ") || line.starts_with("note: "))
        .collect();
    assert_eq!(begins.len(), 4, "{text}");
    assert!(begins[0].starts_with("warning: This run used gpuio's software GPU"), "{text}");
    assert!(begins[1].starts_with("warning: all jobs: Each write waited"), "{text}");
    assert!(begins[2].starts_with("warning: seq-read, rand-read: I/Os of 1.00 MiB"), "{text}");
    assert!(text.contains("\n         seq-write: I/Os of 1.00 MiB"), "{text}");
    assert_eq!(text.matches("IOPS and latency of the device are").count(), 1, "{text}");
    let notes = "note: seq-read: gpu: no use here.\n      seq-write: thread: always so.\n      \
                 To see the settings that a run uses";
    assert!(text.contains(notes), "{text}");
    assert_eq!(text.matches("To see the settings that a run uses").count(), 1, "{text}");
}

/// Several texts may be of one job, and one text of several jobs.
#[test]
fn a_list_that_is_cut_counts_texts_and_jobs_apart() {
    let mut record = records::host_quick();
    record.warnings.clear();
    for requests in 0..7 {
        for job in ["seq-read", "seq-write"] {
            let (device, ahead) = ("sda".to_owned(), false);
            let mean_request_bytes = (100 + requests) << 10;
            let mean_io_bytes = 1 << 20;
            let kind =
                WarningKind::SplitByBlockLayer { mean_io_bytes, mean_request_bytes, device, ahead };
            warn(&mut record, Some(job), kind);
        }
    }
    let text = render_text(&record, 200);
    assert!(text.contains("warning: 2 jobs, first seq-read, seq-write: I/Os of"), "{text}");
    let set = Set { members: vec![Member::new("r", record)], ..Set::default() };
    let page = (find_set_format("markdown").unwrap().render)(&set);
    let cut = "(The first of 7 texts about 2 jobs, which differ only in their figures.) \
               (seq-read, seq-write)\n";
    assert!(page.contains(cut), "{page}");
}

#[test]
fn no_sentence_of_a_warning_is_lost() {
    for record in [records::host_quick(), records::staged_in_trouble(), records::software()] {
        let text = render_text(&record, 120);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for warning in &record.warnings {
            assert!(flat.contains(&warning.text), "{}\n{text}", warning.text);
        }
    }
}

#[test]
fn text_keeps_the_width_it_was_given() {
    for record in [records::host_quick(), records::staged_in_trouble(), records::many_jobs()] {
        for width in [100, 120, 160] {
            for line in render_text(&record, width).lines() {
                assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
            }
        }
    }
    for line in render_text(&records::software(), 80).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn names_cannot_reach_the_terminal_or_start_a_setting() {
    let mut record = records::software();
    record.plan.jobs[0].name = "a\u{1b}[31m\nrw = write".to_owned();
    record.plan.jobs[0].notes = vec!["x\nfilename = /dev/sda".to_owned()];
    record.plan.jobs[0].targets[0].path = "/data/a\nrefill = 1".to_owned();
    let text = render_text(&record, 120);
    assert!(!text.contains('\u{1b}'));
    let plan = plan_text(&record.plan);
    assert!(!plan.contains('\u{1b}'));
    assert_eq!(plan.lines().filter(|line| line.starts_with("rw =")).count(), 1, "{plan}");
    assert_eq!(plan.lines().filter(|line| line.starts_with("filename =")).count(), 1, "{plan}");
    assert_eq!(plan.lines().filter(|line| line.starts_with("refill =")).count(), 1, "{plan}");
    assert!(plan.contains("can't represent filename exactly"), "{plan}");
    assert!(plan.contains("can't represent the job's name exactly: 'a"), "{plan}");
    for name in ["a]", " a", "global", "a\u{7}"] {
        record.plan.jobs[0].name = name.to_owned();
        assert!(plan_text(&record.plan).contains("the job's name exactly"), "{name:?}");
    }
}

#[test]
fn a_value_that_a_reader_would_cut_is_marked() {
    let mut record = records::host_quick();
    let job = &mut record.plan.jobs[0];
    job.directory = Some("/data/run #3".to_owned());
    assert!(plan_text(&record.plan).contains("can't represent directory exactly"));
    record.plan.jobs[0].directory = Some("/data/run#3".to_owned());
    assert!(!plan_text(&record.plan).contains("exactly"));
}

#[test]
fn empty_and_ended_records_say_so() {
    let mut record: Record = records::host_quick();
    record.ended = EndedHow::Failed;
    record.jobs.clear();
    record.totals.clear();
    let text = render_text(&record, 120);
    assert!(text.contains("FAILED: "), "{text}");
    assert!(text.contains("NOT RUN: seq-read, seq-write, rand-read, rand-mixed"), "{text}");
    assert!(text.contains("no job ran"), "{text}");
    for format in gpuio_report::FORMATS {
        let out = (format.render)(&record, TEXT_WIDTH, Show::default());
        assert!(out.is_empty() || out.ends_with('\n'), "{}", format.name);
    }
}

#[test]
fn data_that_a_ceiling_put_back_wrong_is_reported() {
    let mut record = records::ceilings();
    assert!(!render_text(&record, 100).contains("wrong data"));
    // With a figure and without.
    for at in [0, 2] {
        record.ceilings[at].restored = Some(VerifyOutcome {
            bad_blocks: 7,
            bad_places: Some(7),
            complete: true,
            ..VerifyOutcome::default()
        });
        let name = record.ceilings[at].plan.name.clone();
        let text = render_text(&record, 1000);
        let line = text.lines().find(|line| line.contains(&format!("wrong data: {name}: ")));
        assert!(line.is_some_and(|line| line.contains("7 BAD BLOCKS")), "{text}");
        record.ceilings[at].restored = Some(VerifyOutcome::default());
        let text = render_text(&record, 1000);
        assert!(!text.contains("wrong data"), "it was only cut short: {text}");
        assert!(text.contains(&format!("not verified: {name}: ")), "{text}");
        record.ceilings[at].restored = None;
    }
}

#[test]
fn what_parts_should_deliver_is_reported_once_and_what_is_not_known_only_with_evidence() {
    let mut record = records::host_quick();
    assert!(!render_text(&record, 100).contains("expected by"));
    let of = |job: &str, percent, bytes_per_s| JobExpected {
        job: job.to_owned(),
        direction: Towards::Read,
        expected: Expected {
            bytes_per_s,
            bottleneck: Some("nvme0n1: 3.50 GB/s read (a data sheet)".to_owned()),
            unknown: bytes_per_s.is_none().then(|| "no figures for a drive".to_owned()),
            because: vec!["Host memory is not counted.".to_owned()],
            ..Expected::default()
        },
        percent,
    };
    record.expected = vec![of("unknown-job", None, None)];
    assert!(!render_text(&record, 100).contains("expected by"));
    let text = render_text_with_evidence(&record, 100);
    assert!(text.contains("  reads unknown: no figures for a drive"), "{text}");
    record.expected.push(of("one", Some(95.04), Some(3.5e9)));
    record.expected.push(of("two", Some(50.0), Some(3.5e9)));
    let text = render_text(&record, 100);
    assert_eq!(text.matches("bottleneck nvme0n1").count(), 1, "{text}");
    let flat = text.replace("\n  ", " ");
    assert!(flat.contains("one reached 95 %, two reached 50 %"), "{text}");
    assert!(flat.contains("reads 3.26 GiB/s"), "{text}");
}

/// Three I/Os that are missing of many thousands move no percentile of the table, and the largest
/// latency is that of both kinds.
#[test]
fn missing_ios_mark_only_what_they_can_raise() {
    let cells = |missing: u64, longest_wait_ns: u64| {
        let mut record = records::host_quick();
        let at = record.plan.jobs.iter().position(|job| job.name == "rand-mixed").unwrap();
        record.plan.jobs[at].threads = 1;
        let mut latencies = gpuio_base::stat::Histogram::default();
        for (count, ns) in [(19_000, 1_000_000), (990, 5_000_000), (10, 20_000_000)] {
            (0..count).for_each(|_| latencies.record(ns));
        }
        if let Some(latency) = &mut record.jobs[at].read.latency {
            latency.total = latencies.summary().unwrap();
        }
        record.jobs[at].never_started =
            Some(gpuio_record::NeverStarted { ios: missing, longest_wait_ns });
        let text = render_text(&record, 250);
        let line = text.lines().find(|line| line.starts_with("rand-mixed ")).unwrap().to_owned();
        (line.matches('≥').count(), line)
    };
    let (none, line) = cells(0, 0);
    assert_eq!(none, 0, "{line}");
    let (few, line) = cells(3, 9_000_000_000);
    assert_eq!(few, 1, "{line}");
    assert!(line.contains("≥9.00 s"), "the wait is longer than any latency: {line}");
    let (many, line) = cells(1_000_000_000, 1);
    assert_eq!(many, 4, "p50, p99, p99.9 and the largest: {line}");
}

/// Jobs that end by their bytes take as long as the bytes take: no time is stated for them.
#[test]
fn a_plan_has_a_limit_of_time_where_each_job_has_one() {
    let mut plan = records::host_quick().plan;
    assert_eq!(gpuio_report::format::plan::limited_ns(&plan), Some(10_000_000_000));
    plan.jobs[0].stop.runtime_ns = None;
    plan.jobs[0].start_delay_ns = 5_000_000_000;
    assert_eq!(gpuio_report::format::plan::limited_ns(&plan), None);
}
