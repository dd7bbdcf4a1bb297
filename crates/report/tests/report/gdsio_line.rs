//! Our line beside lines that gdsio printed: same fields, same order, same form.

use crate::records;
use crate::records::{block, job, path, result};
use gpuio_record::{JobPlan, JobResult, Order, Warning, WarningKind};
use gpuio_report::gdsio::{comments, line, lines, per_job, render};

/// Lines of gdsio 1.1 to 1.12 from its public documentation and from users.
const PRINTED: &str = include_str!("fixtures/gdsio_lines.txt");

/// The fields of a line, as text.
#[derive(Debug, Clone, PartialEq)]
struct Fields<'a> {
    io_type: &'a str,
    xfer_type: &'a str,
    threads: &'a str,
    io_depth: Option<&'a str>,
    done_kib: &'a str,
    size_kib: &'a str,
    io_size_kib: &'a str,
    throughput: &'a str,
    latency_us: &'a str,
    ops: &'a str,
    seconds: &'a str,
}

/// The text between `before` and the next `after`; moves `rest` past both.
fn take<'a>(rest: &mut &'a str, before: &str, after: &str) -> Option<&'a str> {
    let tail = rest.strip_prefix(before)?;
    let end = if after.is_empty() { tail.len() } else { tail.find(after)? };
    *rest = &tail[end..];
    Some(&tail[..end])
}

fn parse(line: &str) -> Option<Fields<'_>> {
    let rest = &mut { line };
    let fields = Fields {
        io_type: take(rest, "IoType: ", " ")?,
        xfer_type: take(rest, " XferType: ", " ")?,
        threads: take(rest, " Threads: ", " ")?,
        io_depth: take(rest, " IoDepth: ", " "),
        done_kib: take(rest, " DataSetSize: ", "/")?,
        size_kib: take(rest, "/", "(KiB)")?,
        io_size_kib: take(rest, "(KiB) IOSize: ", "(KiB)")?,
        throughput: take(rest, "(KiB) Throughput: ", " GiB/sec")?,
        latency_us: take(rest, " GiB/sec, Avg_Latency: ", " usecs")?,
        ops: take(rest, " usecs ops: ", " ")?,
        seconds: take(rest, " total_time ", " secs")?,
    };
    (*rest == " secs").then_some(fields)
}

/// Six decimals, no more and no fewer.
fn fraction(text: &str) -> f64 {
    let (_, decimals) = text.split_once('.').expect("a decimal point");
    assert_eq!(decimals.len(), 6, "{text}");
    text.parse().expect("a number")
}

fn whole(text: &str) -> u64 {
    text.parse().expect("a whole number")
}

/// A job that did what the fields say.
fn job_of(fields: &Fields<'_>) -> (JobPlan, JobResult) {
    let mut plan = job("gdsio");
    let gdsio = if fields.io_depth.is_some() { 6 } else { 2 };
    plan.path = path("staged", gdsio, fields.xfer_type);
    plan.threads = u32::try_from(whole(fields.threads)).unwrap();
    plan.depth = fields.io_depth.map_or(1, |depth| u32::try_from(whole(depth)).unwrap());
    plan.size_bytes = whole(fields.size_kib) * 1024 / u64::from(plan.threads);
    plan.blocks = vec![block(whole(fields.io_size_kib) * 1024)];
    if fields.io_type.starts_with("RAND") {
        let distribution = gpuio_record::Distribution::Uniform;
        plan.order = Order::Random { distribution, coverage: false };
    }
    let mut done = result(&plan);
    done.read.ios = whole(fields.ops);
    done.read.bytes = whole(fields.done_kib) * 1024;
    let total = &mut done.read.latency.as_mut().unwrap().total;
    total.count = done.read.ios;
    total.mean_ns = fraction(fields.latency_us) * 1e3;
    done.last_done_ns = (fraction(fields.seconds) * 1e9).round() as u64;
    done.measured = None;
    if fields.io_type.ends_with("WRITE") {
        plan.read_percent = 0;
        done.write = std::mem::take(&mut done.read);
    }
    (plan, done)
}

#[test]
fn a_job_that_did_what_gdsio_printed_gives_the_same_line() {
    assert_ne!(PRINTED.lines().count(), 0);
    for printed in PRINTED.lines() {
        let theirs = parse(printed).unwrap_or_else(|| panic!("not parsed: {printed}"));
        let (plan, done) = job_of(&theirs);
        let ours = line(1, &[(&plan, &done)]);
        let mut ours = parse(&ours).unwrap_or_else(|| panic!("not parsed: {ours}"));
        // Theirs was made from a time with more digits than it printed.
        let ratio = fraction(ours.throughput) / fraction(theirs.throughput);
        let digits = 1.5e-6 / fraction(theirs.throughput) + 1e-6 / fraction(theirs.seconds);
        assert!((ratio - 1.0).abs() <= digits, "{ours:?}\n{theirs:?}");
        ours.throughput = theirs.throughput;
        assert_eq!(ours, theirs);
    }
}

#[test]
fn the_parser_of_this_test_refuses_what_is_not_the_line() {
    let good = PRINTED.lines().next().unwrap();
    assert!(parse(good).is_some());
    for bad in [
        good.replace("IoType: ", ""),
        good.replace("GiB/sec,", "GiB/sec\u{ff0c}"),
        good.replace(" Threads", "  Threads"),
        format!("{good} "),
    ] {
        assert_eq!(parse(&bad), None, "{bad}");
    }
}

/// gdsio's own figures keep these relations, and scripts rely on them.
#[test]
fn relations_between_the_fields_hold() {
    for record in [records::staged_in_trouble(), records::host_quick(), records::software()] {
        let text = render(&record);
        let ours = parse(text.lines().next().unwrap()).unwrap();
        let gib = whole(ours.done_kib) as f64 / 1_048_576.0;
        let rate = gib / fraction(ours.seconds);
        assert!((rate - fraction(ours.throughput)).abs() < 2e-6, "{ours:?}");
        let mean = whole(ours.done_kib) as f64 / whole(ours.ops) as f64;
        assert!((mean - whole(ours.io_size_kib) as f64).abs() <= 0.5, "{ours:?}");
    }
    let text = render(&records::staged_in_trouble());
    let ours = parse(text.lines().next().unwrap()).unwrap();
    assert_eq!(whole(ours.ops) * whole(ours.io_size_kib), whole(ours.done_kib));
}

#[test]
fn jobs_are_summed_and_latency_is_weighted_by_ios() {
    let (mut first, mut second) = (job("a"), job("b"));
    first.threads = 3;
    second.threads = 5;
    second.path = path("staged", 2, "CPU_GPU");
    let (mut one, mut two) = (result(&first), result(&second));
    for (done, ios, mean) in [(&mut one, 100, 10_000.0), (&mut two, 300, 50_000.0)] {
        done.read.ios = ios;
        done.read.bytes = ios << 20;
        let total = &mut done.read.latency.as_mut().unwrap().total;
        (total.count, total.mean_ns) = (ios, mean);
    }
    (one.last_done_ns, two.last_done_ns) = (2_000_000_000, 1_000_000_000);
    (one.measured, two.measured) = (None, None);
    let text = line(1, &[(&first, &one), (&second, &two)]);
    let sum = parse(&text).unwrap();
    assert_eq!((sum.threads, sum.ops, sum.xfer_type), ("8", "400", "MIXED"));
    assert_eq!((sum.latency_us, sum.seconds), ("40.000000", "2.000000"));
    assert_eq!(whole(sum.size_kib), 8 << 20);
    // Both are of one group and yet one after the other: the second began half a second after the
    // end.
    let span = |begin_ns, end_ns| Some(gpuio_record::TimeSpan { begin_ns, end_ns });
    one.measured = span(1_000_000_000, 3_000_000_000);
    two.measured = span(3_500_000_000, 4_500_000_000);
    let text = line(1, &[(&first, &one), (&second, &two)]);
    assert_eq!(parse(&text).unwrap().seconds, "3.500000");
    // A stonewall between them: one after the other.
    second.group = 1;
    let each = lines(1, &[(&first, &one), (&second, &two)]);
    let each: Vec<Fields<'_>> = each.iter().map(|text| parse(text).unwrap()).collect();
    let of = |field: fn(&Fields<'_>) -> String| each.iter().map(field).collect::<Vec<_>>();
    assert_eq!(of(|one| one.seconds.to_owned()), ["2.000000", "1.000000"]);
    assert_eq!(of(|one| one.size_kib.to_owned()), [(3 << 20).to_string(), (5 << 20).to_string()]);
    assert_eq!(of(|one| one.xfer_type.to_owned()), ["CPUONLY", "CPU_GPU"]);
}

/// A line without a word beside it is a claim: all that speaks against it is on comment lines.
#[test]
fn what_the_line_can_not_say_stands_on_lines_of_its_own() {
    let mut record = records::host_quick();
    assert!(comments(&record).iter().all(|line| line.starts_with("# path: ")));
    let name = record.plan.jobs[0].name.clone();
    let kind = WarningKind::RunTooShort {
        elapsed_ns: 858_000,
        ios: 16,
        of_files: false,
        of_bytes: false,
        bytes_of: None,
    };
    let text = kind.to_string();
    record.warnings.push(Warning { job: Some(name.clone()), kind, text });
    record.jobs[0].others_cpu_unknown = Some("it was too short".to_owned());
    record.plan.jobs[0].inject = Some("eio=10%".to_owned());
    record.jobs[0].failed = 1001;
    record.ended = gpuio_record::EndedHow::Failed;
    let all = comments(&record);
    assert_eq!(
        all[..4],
        [
            "# failed: stopped by errors; 1,001 I/Os failed".to_owned(),
            format!("# faults injected: {name}: eio=10%"),
            format!("# too short: {name}: 16 I/Os in 858 µs, too little to judge a rate"),
            format!("# unknown: {name}: it was too short"),
        ]
    );
}

#[test]
fn a_job_in_which_nothing_completed_is_zeros_and_no_panic() {
    let plan = job("idle");
    let mut done = result(&plan);
    done.read = Default::default();
    (done.last_done_ns, done.measured) = (0, None);
    let text = line(1, &[(&plan, &done)]);
    let idle = parse(&text).unwrap();
    assert_eq!((idle.throughput, idle.latency_us, idle.ops), ("0.000000", "0.000000", "0"));
    assert_eq!(idle.io_size_kib, "1024");
}

#[test]
fn mixed_loads_have_words_of_their_own() {
    let mut plan = job("mixed");
    let done = result(&plan);
    plan.read_percent = 30;
    assert!(line(1, &[(&plan, &done)]).starts_with("IoType: RW "));
    plan.order =
        Order::Random { distribution: gpuio_record::Distribution::Uniform, coverage: true };
    assert!(line(1, &[(&plan, &done)]).starts_with("IoType: RANDRW "));
}

#[test]
fn jobs_apart_never_look_like_the_line_of_all() {
    let record = records::host_quick();
    let lines = per_job(&record);
    assert_eq!(lines.len(), 4);
    for (text, plan) in lines.iter().zip(&record.plan.jobs) {
        let rest = text.strip_prefix(&format!("Job: {} ", plan.name)).unwrap();
        assert!(parse(rest).is_some(), "{text}");
    }
}

#[test]
fn a_software_gpu_is_named_on_a_line_that_no_parser_takes() {
    let text = render(&records::software());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[3].starts_with("# path: try: ") && parse(lines[3]).is_none());
    let verified = "# verified: try: all right: 8 timed blocks (20.0 MiB), checked in ";
    assert!(lines[2].starts_with(verified) && parse(lines[2]).is_none(), "{text}");
    assert!(parse(lines[0]).is_some());
    assert!(lines[1].starts_with("# software GPU: ") && !lines[1].contains("IoType"));
    let hard = render(&records::host_quick());
    let (results, rest): (Vec<&str>, Vec<&str>) =
        hard.lines().partition(|line| line.starts_with("IoType: "));
    let groups: std::collections::BTreeSet<u32> =
        records::host_quick().plan.jobs.iter().map(|plan| plan.group).collect();
    assert_eq!((results.len(), rest.len()), (groups.len(), 4), "a verdict per job");
    assert!(rest.iter().all(|line| line.starts_with("# path: ")), "{hard}");
}
