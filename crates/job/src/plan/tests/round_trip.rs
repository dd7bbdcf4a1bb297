//! The printed plan is a job file that plans the same run again.

use super::*;

/// Without what only the request explains: who requested, and the reasons.
fn stripped(plan: Plan) -> Plan {
    let mut plan = without_reasons(plan);
    for job in &mut plan.jobs {
        job.via.iter_mut().for_each(|via| via.why = None);
        job.notes.clear();
        // A plan has the bytes as `io_size`, whatever they followed from.
        job.bytes_of = None;
    }
    plan.left_out.clear();
    plan
}

fn comes_back(bench: &Bench, text: &str) {
    let once = bench.plan(&parsed(text)).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let printed = gpuio_report::format::plan::plan_text(&once);
    let again = bench.plan(&parsed(&printed)).unwrap_or_else(|error| panic!("{printed}\n{error}"));
    let (once, again) = (stripped(once), stripped(again));
    for (first, second) in once.jobs.iter().zip(&again.jobs) {
        assert_eq!(first, second, "{printed}");
    }
    assert_eq!(once, again, "{printed}");
    assert_eq!(printed_again(bench, &printed), stripped(once), "a third time");
}

fn printed_again(bench: &Bench, printed: &str) -> Plan {
    let plan = bench.plan(&parsed(printed)).unwrap();
    let text = gpuio_report::format::plan::plan_text(&plan);
    stripped(bench.plan(&parsed(&text)).unwrap())
}

#[test]
fn help_states_the_default_that_a_plan_prints() {
    let plan = Bench::default().plan(&parsed("[a]\nrate_iops=10\nsize=1m\n")).unwrap();
    let text = gpuio_report::format::plan::plan_text(&plan);
    let printed =
        |name| text.lines().find_map(|line: &str| line.strip_prefix(name)?.strip_prefix(" = "));
    let mut compared = Vec::new();
    for key in crate::spec::keys() {
        // Other verbs have defaults of their own.
        let of_bench = key.flags.iter().filter(|flag| flag.verbs.contains(&"bench"));
        let stated = of_bench.filter_map(|flag| flag.help.rsplit_once(" [")?.1.strip_suffix(']'));
        let words = key.words();
        // `auto` is printed as what it chose.
        for word in stated.filter(|word| *word != "auto" && words.contains(word)) {
            compared.extend(printed(key.name).map(|printed| (key.name, word, printed)));
        }
    }
    assert!(compared.contains(&("rate_process", "linear", "linear")), "{compared:?}");
    assert!(compared.iter().all(|(_, stated, printed)| stated == printed), "{compared:?}");
}

/// Job files that use every key with which a plan is printed; seeds of the fuzzer too.
fn cases() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/jobs");
    let files = std::fs::read_dir(folder).unwrap();
    let cases: Vec<String> =
        files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    assert!(!cases.is_empty());
    cases
}

#[test]
fn plans_come_back_on_a_machine_with_gpus() {
    cases().iter().for_each(|text| comes_back(&Bench::default(), text));
}

#[test]
fn plans_come_back_on_a_machine_without() {
    let bench = Bench { gpus: no_gpus(), missing: &["io_uring"], ..Bench::default() };
    for text in cases() {
        // Those whose plan has no GPU elsewhere.
        let elsewhere = Bench::default().plan(&parsed(&text)).unwrap();
        if elsewhere.jobs.iter().all(|job| job.gpus.is_empty()) {
            comes_back(&bench, &text);
        } else {
            assert!(bench.plan(&parsed(&text)).is_err(), "{text}");
        }
    }
}

/// Lines that all jobs have are printed once, and many files and threads have a line.
#[test]
fn a_plan_of_many_jobs_is_short_and_comes_back() {
    let job = |n: u32| format!("[j{n}]\nfile_prefix=p{n}\nbs={}k\n", 4 << n);
    let jobs: String = (0..6).map(job).collect();
    let text = format!("[global]\ndirectory=/d\nsize=64m\nthreads=20\nrw=read\n{jobs}");
    comes_back(&Bench::default(), &text);
    let plan = Bench::default().plan(&parsed(&text)).unwrap();
    let printed = gpuio_report::format::plan::plan_text(&plan);
    let count = |start: &str| printed.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("size = 64M"), count("bs = "), count("# thread ")), (1, 6, 6), "{printed}");
    assert_eq!((count("# file "), count("# and 19 more, the last")), (6, 12), "{printed}");
}
