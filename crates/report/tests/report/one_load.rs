//! A figure is of one load: one path, one block size, one depth.

use gpuio_record::{BlockShare, Order, Record};
use gpuio_report::set::{Figured, Member, Set, figured, find_set_format};

use crate::records;

/// One job of random reads: path, block, depth and who chose it, and the factor of its rate.
pub(crate) fn run(path: &str, block: u64, depth: u32, ours: bool, faster: f64) -> Record {
    let mut job = records::job("job");
    job.path = records::path(path, 2, "XFER");
    job.order = Order::Random { distribution: gpuio_record::Distribution::Uniform, coverage: true };
    job.blocks = vec![records::block(block)];
    job.depth = depth;
    job.defaulted = Some(if ours { vec!["depth".to_owned()] } else { Vec::new() });
    let mut record = records::record(vec![job]);
    let read = &mut record.jobs[0].read;
    read.bytes_per_s *= faster;
    read.iops *= faster;
    record
}

pub(crate) fn set(records: Vec<Record>) -> Set {
    // Rates are scaled, so that they do not follow from the counts.
    let member = |(nth, record)| Member {
        recheck: gpuio_report::Recheck::default(),
        ..Member::new(format!("run-{nth}"), record)
    };
    let members = records.into_iter().enumerate().map(member).collect();
    Set { title: "loads".to_owned(), members, ..Set::default() }
}

const PATHS: [&str; 2] = ["gather", "staged"];
const BLOCKS: [u64; 3] = [4 << 10, 64 << 10, 16 << 20];
const DEPTHS: [u32; 2] = [1, 32];

/// Every path with every block and depth, the depths requested; twice.
pub(crate) fn grid() -> Set {
    let mut records = Vec::new();
    for faster in [1.0, 1.1] {
        for path in PATHS {
            for block in BLOCKS {
                for depth in DEPTHS {
                    records.push(run(path, block, depth, false, faster));
                }
            }
        }
    }
    set(records)
}

/// Two paths with the depths that gpuio chose for them.
pub(crate) fn automatic() -> Set {
    let depths = [("gather", [384, 96, 8]), ("gds", [1, 1, 1])];
    let of = |(path, depths): (&'static str, [u32; 3])| {
        let points = BLOCKS.into_iter().zip(depths);
        points.map(move |(block, depth)| run(path, block, depth, true, 1.0))
    };
    set(depths.into_iter().flat_map(of).collect())
}

fn words(figured: &Figured) -> Vec<(&str, &str)> {
    figured.fixed.iter().map(|(key, word)| (key.as_str(), word.as_str())).collect()
}

/// The numbers of different paths, blocks and depths in the rows of a figure.
fn loads(set: &Set, figured: &Figured) -> (usize, usize, usize) {
    let plans = || figured.rows.iter().map(|row| &set.members[*row].record.plan.jobs[0]);
    let many = |mut all: Vec<String>| {
        all.sort();
        all.dedup();
        all.len()
    };
    (
        many(plans().map(|job| job.path.choice.actual.clone()).collect()),
        many(plans().map(|job| job.blocks[0].max_bytes.to_string()).collect()),
        many(plans().map(|job| job.depth.to_string()).collect()),
    )
}

#[test]
fn a_map_of_two_axes_holds_all_others() {
    let set = grid();
    let map = figured(&set, &["path", "block"], &[]);
    assert_eq!(words(&map), [("depth", "1")]);
    assert_eq!(loads(&set, &map), (2, 3, 1));
    let map = figured(&set, &["block", "threads"], &[("depth", "32"), ("path", "staged")]);
    assert_eq!(words(&map), [("path", "staged"), ("depth", "32")]);
    assert_eq!(loads(&set, &map), (1, 3, 1));
    assert_eq!(map.rows.len(), 6, "three blocks, twice");
}

#[test]
fn distributions_are_of_one_block_size_and_one_depth() {
    let set = grid();
    let lines = figured(&set, &["path", "direction"], &[]);
    assert_eq!(words(&lines), [("block", "4K"), ("depth", "1")]);
    assert_eq!(loads(&set, &lines), (2, 1, 1));
    let other = figured(&set, &["path", "direction"], &[("block", "16M")]);
    assert_eq!(words(&other), [("block", "16M"), ("depth", "1")]);
    // A place that no row has is not held: the figure would be empty.
    let none = figured(&set, &["path", "direction"], &[("block", "8K")]);
    assert_eq!(words(&none), words(&lines));
}

#[test]
fn depths_that_nobody_set_are_no_series_and_those_that_were_set_are_never_mixed() {
    let set = automatic();
    let line = figured(&set, &["path", "block"], &[]);
    assert_eq!(words(&line), [], "one line per path through all blocks");
    assert_eq!(line.rows.len(), 6);
    let mut requested = set.clone();
    for member in &mut requested.members {
        member.record.plan.jobs[0].defaulted = Some(Vec::new());
    }
    let line = figured(&requested, &["path", "block"], &[]);
    assert_eq!(words(&line), [("depth", "1")]);
    assert_eq!(loads(&requested, &line), (1, 3, 1), "gds alone ran at depth 1");
}

/// Records of before the plan said it: the command of a sweep's run tells, any other does not.
#[test]
fn older_records_report_by_their_command_who_chose_the_depth() {
    let mut set = automatic();
    for member in &mut set.members {
        member.record.plan.jobs[0].defaulted = None;
        let words = ["gpuio", "bench", "--set", "bs=4K", "--quiet", "-o", "x.json"];
        member.record.command = words.map(str::to_owned).to_vec();
    }
    assert_eq!(words(&figured(&set, &["path", "block"], &[])), []);
    for said in ["--depth", "jobs.ini"] {
        let mut set = set.clone();
        set.members.iter_mut().for_each(|member| member.record.command.push(said.to_owned()));
        assert_eq!(words(&figured(&set, &["path", "block"], &[])), [("depth", "1")], "{said}");
    }
    for member in &mut set.members {
        member.record.command[3] = "depth=1".to_owned();
    }
    assert_eq!(words(&figured(&set, &["path", "block"], &[])), [("depth", "1")]);
}

#[test]
fn other_machines_rates_and_jobs_beside_each_other_are_no_repeats() {
    let two = |change: fn(&mut Record)| {
        let mut other = run("gather", 4096, 32, false, 1.0);
        change(&mut other);
        set(vec![run("gather", 4096, 32, false, 1.0), other])
    };
    let held = |set: &Set| {
        let figured = figured(set, &["path", "block"], &[]);
        (figured.fixed.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), figured.rows.len())
    };
    assert_eq!(held(&two(|_| ())), (vec![], 2), "repeats");
    let machine = two(|record| record.host.cpu.model = Some("Another".to_owned()));
    assert_eq!(held(&machine), (vec!["machine".to_owned()], 1));
    assert_eq!(held(&two(|record| record.plan.jobs[0].sync = true)).0, ["settings"]);
    let taken = two(|record| {
        record.jobs[0].proof.as_mut().unwrap().verdict.words = "page cache".to_owned();
    });
    assert_eq!(held(&taken), (vec!["taken".to_owned()], 1));
    let mut gds = two(|record| {
        record.plan.cufile.insert("properties.use_pci_p2pdma".to_owned(), "true".to_owned());
    });
    assert_eq!(held(&gds), (vec![], 2), "no path of cuFile's");
    for member in &mut gds.members {
        member.record.plan.jobs[0].register_buffer = Some(true);
    }
    assert_eq!(held(&gds), (vec!["cufile".to_owned()], 1));
    let mut beside = run("gather", 4096, 32, false, 1.0);
    let mut again = beside.plan.jobs[0].clone();
    again.name = "beside".to_owned();
    beside.jobs.push(records::result(&again));
    beside.plan.jobs.push(again);
    assert_eq!(held(&set(vec![beside])), (vec!["job".to_owned()], 1));
}

fn render(format: &str, set: &Set) -> String {
    (find_set_format(format).unwrap().render)(set)
}

#[test]
fn the_summary_has_one_row_for_each_load_and_every_reason_once() {
    let set = grid();
    for format in ["html", "markdown"] {
        let text = render(format, &set);
        let reason = "the record has none";
        assert_eq!(text.matches(reason).count(), 1, "{format}: {text}");
    }
    let page = render("html", &set);
    let table = page.split("class=\"summary\">").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!(table.matches("<tr data-path=").count(), 12, "24 runs of 12 loads");
    assert!(table.contains("randread 4K, 2 threads at depth 32"), "{table}");
    assert!(table.contains("<td class=\"n\">2</td>"), "no n: {table}");
    // Two runs: 8 MiB/s and a tenth more.
    assert!(table.contains("<td class=\"n\">8.40 MiB/s</td>"), "no median: {table}");
    let three = vec![1.0, 1.1, 1.2].into_iter().map(|by| run("gds", 1 << 20, 1, true, by));
    let text = render("markdown", &self::set(three.collect()));
    // scipy.stats.t.interval(0.95, 2, 1.1, 0.1 / 3 ** 0.5): 1.1 ± 0.24841.
    assert!(text.contains("at depth 1 (automatic) | gds | 3 | 2.20 GiB/s |"), "{text}");
    assert!(text.contains("| 1.70 GiB/s to 2.70 GiB/s |"), "{text}");
}

#[test]
fn the_page_begins_with_machine_gpu_drive_and_the_state_of_the_page_cache() {
    let mut set = grid();
    let head = |set: &Set| {
        let page = render("html", set);
        page.split("<main>").next().unwrap().split("class=\"where\"").nth(1).unwrap().to_owned()
    };
    let first = head(&set);
    for word in ["Example CPU 9000", "none was used", "Example NVMe 3.84TB", "is unknown"] {
        assert!(first.contains(word), "no {word}: {first}");
    }
    for member in &mut set.members {
        member.record.jobs[0].cache.resident_before = Some(0.0);
    }
    assert!(head(&set).contains("O_DIRECT in all jobs; cold"));
    for member in &mut set.members {
        member.record.jobs[0].cache.resident_before = Some(1.0);
        member.record.jobs[0].direct_actual = gpuio_record::DirectMode::Buffered;
    }
    assert!(head(&set).contains("used in all jobs; warm"));
    set.members[0].record.jobs[0].cache.resident_before = Some(0.5);
    assert!(head(&set).contains("it held 50 % to 100 % of the files before"));
}

/// A mix is neither random reads nor random writes, and both of its directions are one load.
#[test]
fn a_mix_is_one_load_under_its_own_name() {
    let mut record = run("host", 8 << 10, 32, false, 1.0);
    record.plan.jobs[0].read_percent = 70;
    record.jobs[0].write = record.jobs[0].read.clone();
    let both = 2.0 * record.jobs[0].read.bytes_per_s;
    let text = gpuio_report::render_text(&record, 250);
    for name in ["randrw 70/30 reads", "randrw 70/30 writes", "randrw 70/30 total"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let set = set(vec![record]);
    for format in ["markdown", "html"] {
        let page = (find_set_format(format).unwrap().render)(&set);
        assert!(!page.contains("2 loads"), "{format}: {page}");
        let head = page.split("randrw 70/30 8K, ").nth(1).unwrap_or_default();
        let rate = gpuio_base::units::human_rate(both);
        assert!(head.split("IOPS").next().unwrap().contains(&rate), "{format}: {rate}: {page}");
        for direction in ["randread 8K", "randwrite 8K"] {
            assert!(!page.contains(direction), "{format}: {page}");
        }
    }
}

/// Depths 1 to 16 of two paths: one stops growing at 4, the other does not stop.
#[test]
fn a_sweep_over_depth_has_a_curve_of_latency_with_the_knee_named() {
    let rates = [("gather", [1.0, 1.9, 3.0, 3.1, 3.1]), ("staged", [1.0, 2.0, 4.0, 8.0, 16.0])];
    let of = |(path, rates): (&'static str, [f64; 5])| {
        let points = [1, 2, 4, 8, 16].into_iter().zip(rates);
        points.flat_map(move |(depth, faster)| {
            [0.99, 1.0, 1.01].map(|times| run(path, 4096, depth, false, faster * times))
        })
    };
    let set = set(rates.into_iter().flat_map(of).collect());
    let render = |name: &str| (find_set_format(name).unwrap().render)(&set);
    for name in ["html", "markdown", "svg"] {
        let text = render(name).replace("\n> ", " ");
        assert!(text.contains("gather: knee at depth=4: "), "{name}: {text}");
        // A picture breaks its lines.
        for words in [
            "staged: no knee, throughput still grew at the highest load",
            "by more than 10 % for a doubling of depth",
        ] {
            assert!(text.contains(words) || name == "svg", "{name}: {text}");
        }
    }
    let picture = render("svg");
    assert_eq!(picture.matches("<circle").count(), 10 + 20 + 2, "a ring on each line of gather");
    assert!(render("html").contains("Ring: the knee."));
    assert_eq!(picture.matches("stroke-dasharray=\"6 4\"").count(), 4, "p99 and its legend");
    // One run of each load decides nothing, and no ring is drawn or named.
    let once = set.members.iter().skip(1).step_by(3).cloned().collect();
    let once = Set { members: once, ..set.clone() };
    let once = (find_set_format("html").unwrap().render)(&once);
    // One of two block sizes is drawn: the sentences name it.
    let mut two = set.clone();
    let large = [1, 2, 4].map(|depth| run("gather", 65536, depth, false, 1.0));
    two.members.extend(large.map(|record| Member::new("large", record)));
    let page = (find_set_format("markdown").unwrap().render)(&two);
    assert!(page.contains("gather, block size 4K: knee at depth=4: "), "{page}");
    let words = "gather: knee not decided: ";
    assert!(once.contains(words) && !once.contains("Ring: the knee."), "{once}");
    // Two depths are no curve.
    assert!(!(find_set_format("html").unwrap().render)(&grid()).contains("figure class=\"curve\""));
}

/// Direction, block, threads and depth are alike; what decides the figure beside them differs.
#[test]
fn a_load_is_named_with_what_not_all_have_and_what_all_have_is_said_once() {
    use gpuio_record::{Compressible, Distribution};
    let with = |change: &dyn Fn(&mut gpuio_record::JobPlan)| {
        let mut record = run("host", 4 << 10, 1, false, 1.0);
        let plan = &mut record.plan.jobs[0];
        (plan.directory, plan.size_bytes) = (Some("/data".to_owned()), 1 << 30);
        change(plan);
        record
    };
    let zipf = |plan: &mut gpuio_record::JobPlan| {
        let distribution = Distribution::Zipf { theta: 1.2 };
        plan.order = Order::Random { distribution, coverage: false };
    };
    let arrivals = gpuio_record::Arrivals::Steady;
    let pacing = gpuio_record::Pacing { bytes_per_s: Some(602 << 20), iops: None, arrivals };
    let repeats = Compressible { percent: 50, chunk_bytes: 4096 };
    let set = set(vec![
        with(&|_| {}),
        with(&zipf),
        with(&|plan| plan.ramp_ns = 5_000_000_000),
        with(&|plan| plan.compressible = Some(repeats)),
        with(&|plan| plan.offset_bytes = 1 << 30),
        with(&|plan| plan.pacing = Some(pacing)),
    ]);
    let text = (find_set_format("markdown").unwrap().render)(&set);
    let row = |text: &str, words: &str| {
        let ends = format!("at depth 1{words} |");
        assert!(text.contains(&ends), "{ends}\n{text}");
    };
    let rate = ", at 602 MiB/s per thread, as requested";
    for words in ["", ", zipf 1.2", ", ramp 5s", ", 50 % compressible", ", from 1G", rate] {
        row(&text, words);
    }
    assert_eq!(text.matches("All loads: 1G per thread.").count(), 1, "{text}");
    assert!(text.contains("| randread 4K, 2×1, ramp 5s |"), "{text}");

    // A part of a named file is a region of its own; all of it is not.
    let of_file = |bytes: u64| {
        with(&move |plan| {
            (plan.directory, plan.size_bytes) = (None, bytes);
            plan.targets.iter_mut().for_each(|target| target.length_bytes = 1 << 30);
        })
    };
    let set = self::set(vec![of_file(1 << 30), of_file(1 << 20)]);
    let text = (find_set_format("markdown").unwrap().render)(&set);
    row(&text, "");
    row(&text, ", 1M per thread");
}

/// A load of two block sizes stands at neither of them, and two with other shares are no repeats.
#[test]
fn a_mix_of_block_sizes_has_no_place_on_their_axis() {
    let mixed = |small: u8| {
        let mut record = run("gather", 4 << 10, 1, false, 1.0);
        let share = |size, percent| BlockShare { percent, ..records::block(size) };
        record.plan.jobs[0].blocks = vec![share(4 << 10, small), share(64 << 10, 100 - small)];
        record
    };
    let fixed = || BLOCKS.map(|block| run("gather", block, 1, false, 1.0)).to_vec();
    let render = |set: &Set, name: &str| (find_set_format(name).unwrap().render)(set);
    let against = "Throughput against block size";
    assert!(render(&set(fixed()), "svg").contains(against));
    let mut all = fixed();
    all.extend([mixed(90), mixed(10)]);
    let all = set(all);
    let svg = render(&all, "svg");
    assert!(!svg.contains(against) && svg.contains("Throughput of each load"), "{svg}");
    let text = render(&all, "markdown");
    for words in ["4K/90:64K/10", "4K/10:64K/90"] {
        assert!(text.contains(&format!("at depth 1, {words} | gather | 1 |")), "{words}: {text}");
    }
}
