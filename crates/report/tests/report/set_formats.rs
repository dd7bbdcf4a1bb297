//! The formats of sets, by rules that need no browser.

use std::collections::BTreeMap;
use std::process::Command;

use gpuio_base::stat::Percentile;
use gpuio_record::{ContentDigest, Record, Warning, WarningKind};
use gpuio_report::find;
use gpuio_report::format::TEXT_WIDTH;
use gpuio_report::format::text::Show;
use gpuio_report::set::{Member, SET_FORMATS, Set, find_set_format, fio_files};
use gpuio_testkit::programs::python_with;
use serde_json::Value;

use crate::records;

fn set() -> Set {
    let all = [records::host_quick(), records::staged_in_trouble(), records::ceilings()];
    let member = |(nth, record)| Member {
        at: vec![("bs".to_owned(), "1M".to_owned()), ("na me".to_owned(), "a\"b\\".to_owned())],
        ..Member::new(format!("run-{nth}"), record)
    };
    Set {
        title: "three records".to_owned(),
        members: all.into_iter().enumerate().map(member).collect(),
        ..Set::default()
    }
}

fn render(name: &str, set: &Set) -> String {
    (find_set_format(name).unwrap().render)(set)
}

#[test]
fn every_text_bears_its_mark_and_ends_its_line() {
    for format in SET_FORMATS {
        for set in [set(), Set { title: "none".to_owned(), ..Set::default() }] {
            let text = (format.render)(&set);
            let head: String = text.chars().take(2000).collect();
            let empty_fio = set.members.is_empty() && format.name == "fio-json";
            assert!(head.contains(format.mark) || empty_fio, "{}: {head}", format.name);
            assert!(text.ends_with('\n'), "{}", format.name);
        }
    }
}

/// A plan is a job file: a reader copies it, line by line.
#[test]
fn the_plan_in_the_page_has_its_lines() {
    let mut set = set();
    set.members[0].record.plan_text = "# a plan\n[job]\nname = a\u{1b}<b>\n".to_owned();
    let text = render("html", &set);
    assert!(text.contains("# a plan\n[job]\nname = a\\x1b&lt;b&gt;</pre>"), "{text}");
}

#[test]
fn markdown() {
    insta::assert_snapshot!(render("markdown", &set()));
}

/// Files have them besides the usual ones, and tables in their place.
#[test]
fn percentiles_that_were_asked_for_are_in_every_format() {
    let mut record = records::host_quick();
    let asked = ["75", "99.5"].map(|text| Percentile::parse(text).unwrap()).to_vec();
    let shown = |record: &Record, jobs: usize| {
        let mut record = record.clone();
        record.plan.jobs.iter_mut().take(jobs).for_each(|job| job.percentiles = asked.clone());
        (find("text").unwrap().render)(&record, TEXT_WIDTH, Show::default())
    };
    for (jobs, usual) in [(record.plan.jobs.len(), false), (1, true)] {
        let text = shown(&record, jobs);
        assert!(text.contains("p75") && text.contains("p99.5"), "{text}");
        assert_eq!(text.contains("p99.9"), usual, "{text}");
    }
    record.plan.jobs.iter_mut().for_each(|job| job.percentiles = asked.clone());
    let set = Set { members: vec![Member::new("r", record)], ..Set::default() };
    for (name, word) in [
        ("csv", ",flush_p99_ns,latency_p75_ns,latency_p99_5_ns,"),
        ("openmetrics", "quantile=\"0.995\""),
        ("fio-json", "\"75.000000\""),
        ("markdown", "| IOPS | p75 | p99.5 | µs/MiB |"),
        ("html", "data-key=\"p99_5\""),
    ] {
        assert!(render(name, &set).contains(word), "{name} lacks {word}");
    }
}

fn leaves(value: &Value, place: &str, out: &mut Vec<String>) {
    match value {
        Value::String(_) => out.push(place.to_owned()),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(at, one)| leaves(one, &format!("{place}/{at}"), out));
        }
        Value::Object(all) => {
            all.iter().for_each(|(key, one)| leaves(one, &format!("{place}/{key}"), out));
        }
        _ => {}
    }
}

/// Every text that a record may hold is hostile at once: none of it is HTML, a link or a line of
/// its own.
#[test]
fn no_text_of_a_record_is_markup() {
    const HOSTILE: &str = "<img src=x onerror=alert(1)>|[a](javascript:b) https://c.d `\n# e";
    let mut changed = Vec::new();
    let mut hostile = |record: Record| {
        let mut value = serde_json::to_value(&record).unwrap();
        let mut places = Vec::new();
        leaves(&value, "", &mut places);
        for place in places {
            let before = std::mem::replace(value.pointer_mut(&place).unwrap(), HOSTILE.into());
            match serde_json::from_value::<Record>(value.clone()) {
                Ok(_) => changed.push(place),
                // A word of a list of words is no free text.
                Err(_) => *value.pointer_mut(&place).unwrap() = before,
            }
        }
        serde_json::from_value(value).unwrap()
    };
    let all = [
        records::host_quick(),
        records::staged_in_trouble(),
        records::ceilings(),
        records::beside(),
    ];
    let member = |record| Member::new(HOSTILE, record);
    let members = all.into_iter().map(|record| member(hostile(record))).collect();
    let set = Set {
        title: HOSTILE.to_owned(),
        members,
        left_out: vec![HOSTILE.to_owned()],
        ..Set::default()
    };
    for place in ["/watched/groups/0/devices/0/probe", "/plan/jobs/0/name", "/command/0"] {
        assert!(changed.iter().any(|one| one == place), "{place} kept its text");
    }
    let text = render("markdown", &set);
    // Commands are code spans, in which nothing is markup.
    let (page, _commands) = text.split_once("\n## Commands\n").unwrap();
    let raw: Vec<&str> = page.lines().filter(|line| line.contains('<')).collect();
    assert_eq!(raw, ["<!-- gpuio report -->"]);
    assert!(page.contains("&lt;img"));
    assert_eq!(page.matches("](").count(), page.matches("\\](").count());
    assert!(!text.contains("\n# e") && !page.contains("://"), "{page}");
}

/// A per cent of what parts should deliver stands with its bottleneck, and where there is none with
/// the reason.
#[test]
fn per_cent_of_expectation_is_in_the_formats() {
    let one = || Member::new("one", records::beside());
    let mut set = Set { members: vec![one()], ..Set::default() };
    let percent = set.members[0].record.expected[0].percent.unwrap();
    let whole = format!("{percent:.0} % of the expected 3.26 GiB/s (bottleneck nvme0n1: 3.50 GB/s");
    for format in ["html", "markdown"] {
        let text = render(format, &set);
        assert!(text.contains(&whole), "{format}: {text}");
    }
    assert!(render("markdown", &set).contains(&format!("| {percent:.0} nvme0n1 |")));
    let metrics = render("openmetrics", &set);
    let line = metrics.lines().find(|line| line.starts_with("gpuio_of_expected_ratio{")).unwrap();
    assert!(line.contains("bottleneck=\"nvme0n1\""), "{line}");
    assert!(line.ends_with(&format!(" {}", percent / 100.0)), "{line}");
    assert!(render("csv", &set).contains("nvme0n1: 3.50 GB/s read (a data sheet)"));
    let expected = &mut set.members[0].record.expected[0];
    expected.percent = None;
    expected.expected.bytes_per_s = None;
    expected.expected.bottleneck = None;
    expected.expected.unknown = Some("no figures for Example NVMe".to_owned());
    let text = render("html", &set);
    let why = "Expected performance unknown: no figures for Example NVMe.";
    assert_eq!(text.matches(why).count(), 1);
    assert!(!render("openmetrics", &set).contains("gpuio_of_expected_ratio{"));
}

#[test]
fn devices_over_whole_groups_are_tables_with_the_samplers_cost() {
    let one = |record| Member::new("one", record);
    let set = Set { members: vec![one(records::beside())], ..Set::default() };
    let text = render("markdown", &set);
    let devices = text.split("## Devices").nth(1).unwrap().split("\n## ").next().unwrap();
    insta::assert_snapshot!(devices);
    assert!(!devices.contains("nvme1n1"), "it did nothing: {devices}");
    assert!(devices.contains("One idle device is not shown."), "{devices}");
    let page = render("html", &set);
    assert!(page.contains("Devices were sampled every 1s, 41 times; sampling took 12.0 ms of CPU"));
    let bare = Set { members: vec![one(records::host_quick())], ..Set::default() };
    assert!(render("html", &bare).contains("the devices of these runs were not sampled"));
    assert!(!render("markdown", &bare).contains("## Devices"));
    // Beyond a quarter of a million values whole groups are left out, and that is said.
    let many = Set { members: vec![one(records::beside()); 500], ..Set::default() };
    let page = render("html", &many);
    assert!(
        page.contains("the page holds those of the first jobs, at most 250"),
        "nothing is said"
    );
    let block = page.split("id=\"series\">").nth(1).unwrap().split("</script>").next().unwrap();
    let series: Value = serde_json::from_str(block).unwrap();
    let groups = series["groups"].as_object().unwrap().len();
    assert_eq!(series["jobs"].as_object().unwrap().len(), 500);
    // Fourteen figures of forty intervals each.
    assert_eq!(groups, 250_000 / (14 * 40), "the first of 500");
}

#[test]
fn the_page_holds_no_address_to_fetch_from() {
    let page = render("html", &set());
    let own = page
        .replace("http://www.w3.org/2000/svg", "")
        .replace("https://github.com/leeoniya/uPlot", "");
    for word in [
        "http://",
        "https://",
        "@import",
        "src=\"/",
        "fetch(",
        "XMLHttpRequest",
        "innerHTML",
        "eval(",
    ] {
        let places: Vec<&str> =
            own.match_indices(word).map(|(at, _)| &own[at..(at + 60).min(own.len())]).collect();
        assert!(places.is_empty(), "{word}: {places:?}");
    }
    assert!(page.contains("default-src 'none'"));
}

/// Every GPU against every drive is in the page's data, by the names that the kernel and the driver
/// have.
#[test]
fn rows_report_their_gpu_and_their_drive() {
    let mut set = set();
    let mut other = records::staged_in_trouble();
    other.plan.jobs.iter_mut().for_each(|job| job.gpus.truncate(1));
    other.storage[0].device.as_mut().unwrap().name = "nvme1n1".to_owned();
    set.members.push(Member::new("other", other));
    let page = render("html", &set);
    let block = page.split("id=\"figures\">").nth(1).unwrap().split("</script>").next().unwrap();
    let figures: Value = serde_json::from_str(block).unwrap();
    let words = |key: &str| {
        let axes = figures["axes"].as_array().unwrap();
        let axis = axes.iter().find(|axis| axis["key"] == key).unwrap();
        let last = figures["rows"].as_u64().unwrap() as usize - 1;
        let at = axis["of"][last].as_u64().unwrap() as usize;
        (axis["words"].as_array().unwrap().len(), axis["words"][at].clone())
    };
    assert_eq!(words("drive"), (2, "nvme1n1".into()));
    assert_eq!(words("gpu"), (3, "GPU 0".into()), "none, GPU 0+GPU 1, GPU 0");
    assert_eq!(words("na me").1, "-", "no place in the sweep");
}

#[test]
fn what_is_too_large_is_left_out_and_said() {
    let mut set = set();
    let whole = render("html", &set);
    set.embed_limit = Some(1000);
    let short = render("html", &set);
    let packed = |page: &str| page.split("id=\"records\">").nth(1).unwrap().find('<').unwrap();
    assert!(packed(&whole) > 1000);
    assert_eq!(packed(&short), 0);
    assert!(short.contains("report --embed-limit"));
}

#[test]
fn csv_has_a_line_per_row_with_record_and_axes_at_its_end() {
    let set = set();
    let text = render("csv", &set);
    let mut lines = text.lines();
    let head = lines.next().unwrap();
    assert!(
        head.ends_with(
            "stonewall_bytes_per_s,flush_p50_ns,flush_p99_ns,record,doubt,axis_bs,axis_na me"
        ),
        "{head}"
    );
    let rows = lines.count();
    let one: usize = set
        .members
        .iter()
        .map(|member| {
            (gpuio_report::find("csv").unwrap().render)(&member.record, TEXT_WIDTH, Show::default())
                .lines()
                .count()
                - 1
        })
        .sum();
    assert_eq!(rows, one);
}

#[test]
fn fio_json_has_the_fields_that_plotting_tools_need() {
    let set = set();
    let value: Value = serde_json::from_str(&render("fio-json", &set)).unwrap();
    let jobs = value["jobs"].as_array().unwrap();
    let all: usize = set.members.iter().map(|member| member.record.jobs.len()).sum();
    assert_eq!(jobs.len(), all);
    for job in jobs {
        for option in ["rw", "bs", "iodepth", "numjobs"] {
            assert!(job["job options"][option].is_string(), "{option}");
        }
        for key in ["usr_cpu", "sys_cpu", "latency_ns", "latency_us", "latency_ms"] {
            assert!(!job[key].is_null(), "{key}");
        }
        let classes = ["latency_ns", "latency_us", "latency_ms"].iter();
        let sum: f64 = classes
            .flat_map(|unit| job[*unit].as_object().unwrap().values())
            .map(|share| share.as_f64().unwrap())
            .sum();
        assert!((sum - 100.0).abs() < 1e-6, "{sum}");
    }
    let first = &set.members[0].record.jobs[0].read;
    assert_eq!(jobs[0]["read"]["iops"], first.iops);
    assert_eq!(jobs[0]["read"]["lat_ns"]["mean"], first.latency.as_ref().unwrap().total.mean_ns);
    // Every percentile of fio's list that has enough I/Os, and the drives with what they did.
    let list = |job: &Value| job["read"]["clat_ns"]["percentile"].as_object().map(|all| all.len());
    assert!(
        jobs.iter().any(|job| list(job) > Some(12)),
        "{:?}",
        jobs.iter().map(list).collect::<Vec<_>>()
    );
    let drives = value["disk_util"].as_array().unwrap();
    let groups = |name: &str| {
        let of = |record: &Record| {
            let mut seen = BTreeMap::new();
            for (plan, job) in record.plan.jobs.iter().zip(&record.jobs) {
                let found = job.cache.storage.iter().find(|one| one.device == name);
                seen.entry(plan.group).or_insert(found.map_or(0, |one| one.reads));
            }
            seen.values().sum::<u64>()
        };
        set.members.iter().map(|member| of(&member.record)).sum::<u64>()
    };
    for drive in drives {
        assert_eq!(drive["read_ios"], groups(drive["name"].as_str().unwrap()), "{drive}");
    }
    let files = fio_files(&set);
    assert_eq!(files.len(), all);
    let mut names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "a file per job");
}

/// The samples of a family stand together behind its metadata, and the end is marked.
#[test]
fn openmetrics_keeps_to_its_grammar() {
    let text = render("openmetrics", &set());
    assert!(text.ends_with("# EOF\n"));
    let mut family = String::new();
    let mut seen: Vec<String> = Vec::new();
    for line in text.lines().take_while(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap().to_owned();
            assert!(!seen.contains(&family), "{family} twice");
            seen.push(family.clone());
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name == family && name.ends_with(unit), "{line}");
        } else if !line.starts_with("# HELP ") {
            assert!(line.starts_with(&family), "{line} in {family}");
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
        }
    }
    assert!(text.contains("axis_na_me=") || text.contains("na_me=\"a\\\"b\\\\\""), "{text}");
}

/// Prometheus' own parser, where Python has it.
#[test]
fn openmetrics_is_read_by_the_client_library() {
    const READ: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
families = {family.name: family for family in read(sys.stdin.read())}
assert families['gpuio_throughput_bytes_per_second'].type == 'gauge'
assert families['gpuio_latency_seconds'].type == 'summary'
print(sum(len(family.samples) for family in families.values()))
";
    let Some(python) = python_with("prometheus_client.openmetrics.parser") else { return };
    let text = render("openmetrics", &set());
    let mut child = Command::new(python)
        .args(["-c", READ])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let samples: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(samples, lines);
}

/// A program that reads only the format learns what is said to people.
#[test]
fn doubts_stand_in_the_formats_that_programs_read() {
    let mut set = set();
    set.members.truncate(2);
    for member in &mut set.members {
        (member.recheck, member.record.warnings) = (gpuio_report::Recheck::default(), Vec::new());
        member.record.content_sha256 = ContentDigest::Intact;
    }
    let jobs = |set: &Set| {
        let value: Value = serde_json::from_str(&render("fio-json", set)).unwrap();
        value["jobs"].as_array().unwrap().clone()
    };
    let doubts = |job: &Value| -> Vec<String> {
        let all = job["gpuio"]["doubts"].as_array().unwrap().iter();
        let all = all.map(|one| one["doubt"].as_str().unwrap().to_owned());
        // They follow from results, and not from the record as a document.
        let of_results =
            ["not_storage", "wrong_data", "disturbed", "others_unknown", "failed", "content"];
        all.filter(|one| !of_results.contains(&one.as_str())).collect()
    };
    assert!(jobs(&set).iter().all(|job| doubts(job).is_empty()), "{:#?}", jobs(&set));

    let kind = WarningKind::RunTooShort {
        elapsed_ns: 200_000_000,
        ios: 480,
        of_files: false,
        of_bytes: false,
        bytes_of: None,
    };
    let job = Some(set.members[0].record.plan.jobs[0].name.clone());
    let text = kind.to_string();
    set.members[0].record.warnings.push(Warning { job, kind, text });
    set.members[0].recheck.unproved = Some("it names gpuio 0.0.1".to_owned());
    set.members[1].record.content_sha256 = ContentDigest::Changed("00".to_owned());
    let changed = "the record: its content is another".to_owned();
    set.members[1].recheck.changed = Some(changed.clone());
    set.members[1].recheck.wrong = vec![changed];
    let all = jobs(&set);
    assert_eq!(doubts(&all[0]), ["no_digest", "too_short"], "{}", all[0]);
    assert_eq!(doubts(&all[1]), ["no_digest"], "{}", all[1]);
    assert_eq!(doubts(all.last().unwrap()), ["changed"]);
    set.members[1].recheck.wrong.push("job 'a': bytes: 2, 1 by its counts".to_owned());
    assert_eq!(doubts(jobs(&set).last().unwrap()), ["changed", "contradiction"]);
    let text = render("openmetrics", &set);
    let sample = "gpuio_doubt_info{record=\"run-0\",record_number=\"0\",job=\"seq-read\",\
                  doubt=\"too_short\",why=\"The job was too short for its rate or percentiles\"} 1";
    assert!(text.contains(sample), "{text}");
    assert_eq!(text.matches("# TYPE gpuio_doubt info").count(), 1, "{text}");
    assert!(
        text.contains("doubt=\"changed\",why=\"The record is not as gpuio wrote it: its content")
    );
    set.members[1].recheck.misplace(Some("it is not the one that the sweep made"));
    let three = ["changed", "another_record", "contradiction"];
    assert_eq!(doubts(jobs(&set).last().unwrap()), three);
    let csv = render("csv", &set);
    for doubt in three.into_iter().chain(["no_digest", "too_short"]) {
        assert!(csv.contains(&format!("{doubt}: ")), "{doubt}: {csv}");
    }
}
