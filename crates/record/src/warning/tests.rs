use super::*;
use crate::BytesOf;

#[test]
fn every_text_is_two_to_four_sentences_on_one_line_and_names_a_flag_or_command() {
    let files = |mut kind: WarningKind| {
        if let WarningKind::RunTooShort { of_files, .. }
        | WarningKind::UnevenFinish { of_files, .. } = &mut kind
        {
            *of_files = true;
        }
        if let WarningKind::DepthNotReached { limit, .. } = &mut kind {
            *limit =
                Some("reads on nvme12n1 (259:12) to 1024 MiB/s and 100000 I/Os per second".into());
        }
        kind
    };
    let all = WarningKind::examples().into_iter();
    for kind in all.flat_map(|kind| [kind.clone(), files(kind)]) {
        let words = kind.to_string();
        let sentences = words.matches(". ").count() + 1;
        assert!((2..=4).contains(&sentences), "{sentences} sentences: {words}");
        assert!(words.ends_with('.'), "{words}");
        assert!(!words.contains('\n') && !words.contains("  "), "{words}");
        let next = ["--", "gpuio top", "repeat"].iter().any(|step| words.contains(step));
        assert!(next, "no next step: {words}");
        // Three lines of a terminal that is 100 columns wide, behind the job's name.
        assert!(words.len() <= 300, "{} bytes: {words}", words.len());
    }
}

#[test]
fn every_kind_has_a_meaning_and_fields_that_are_explained() {
    let schema = schemars::schema_for!(WarningKind).to_value();
    for (nth, kind) in warning_kinds().iter().enumerate() {
        assert_eq!(schema["oneOf"][nth]["properties"]["warning"]["const"], kind.id.as_str());
        assert!(kind.meaning.ends_with('.'), "{kind:?}");
        assert!(
            kind.ignore_if.ends_with('.') && kind.severity.meaning().ends_with('.'),
            "{kind:?}"
        );
        assert!(kind.fields.iter().all(|(_, about)| about.ends_with('.')), "{kind:?}");
    }
}

/// Figures and next steps of the examples' texts.
const FIGURES: [(&str, &[&str]); 40] = [
    ("page_cache_served_reads", &["1.00 MiB of the 10.0 GiB", "--direct", "--size"]),
    ("direct_but_cached", &["2.00 MiB of the 10.0 GiB", "(tmpfs)", "repeat in a directory"]),
    ("holes", &["12.0 MiB of 64.0 MiB are holes", "not served by a device", "--directory"]),
    ("mapped_memory", &["11.0 GiB", "not of storage", "104 ms", "--direct"]),
    ("written_pages_lost", &["4.00 MiB of the 1.00 GiB", "in no file", "--path cached"]),
    ("remade_before_verification", &["3 files were written anew", "repeat with the size"]),
    ("tier_served_reads", &["3.00 GiB of the samples", "5.00 GiB from storage", "only the latter"]),
    ("direct_refused", &["tmpfs", "--buffered"]),
    ("depth_on_synchronous_engine", &["depth of 32", "psync", "--threads"]),
    ("async_engine_on_buffered_file", &["libaio", "--direct"]),
    ("split_by_block_layer", &["1.00 MiB", "244 KiB", "nvme0n1", "split", "--bs 128K"]),
    ("buffered_writes", &["4.00 GiB", "at most 1.00 GiB of them", "--sync"]),
    ("sync_writes", &["O_DSYNC"]),
    ("direct_writes_in_device_cache", &["nvme0n1", "--runtime"]),
    ("run_too_short", &["480 I/Os were measured in 120 ms", "--runtime 30s"]),
    ("blocks_cut", &["310 of 1,582 I/Os were shorter", "10.4 KiB", "19.5 KiB", "--"]),
    ("data_set_fits_memory", &["8.00 GiB", "64.0 GiB"]),
    ("engine_stepped_down", &["io_uring", "psync", "kernel.io_uring_disabled is 2"]),
    ("stopped", &["once: 6.00 s stopped", "the 32 I/Os", "repeat the run"]),
    ("rate_not_reached", &["73.1 %", "--rate"]),
    ("never_started", &["1,200", "48,000", "250 ms", "--rate"]),
    ("not_steady", &["iops:2%", "3.210 %", "--runtime"]),
    ("uneven_finish", &["4.00 s", "9.50 s", "--runtime"]),
    ("software_gpu", &["software GPU"]),
    ("faults_injected", &["short 53, delay 102", "None occurred of: eio;"]),
    ("work_between_ios", &["3.00 s", "25.0 %"]),
    ("compute_overran", &["70 %"]),
    ("compute_fell_short", &["27 % shorter"]),
    ("more_threads_than_cpus", &["64 threads shared 8 CPUs", "--threads 8"]),
    ("far_from_gpu", &["node 0 served GPU 3", "node 1", "--numa 1"]),
    ("note", &["skip_bufregister has no effect on path host."]),
    ("read_ahead", &["32.0 GiB for the 1.00 GiB", "around each small read", "--direct"]),
    (
        "other_cpu_time",
        &["gpuio had 12 % of the time of its 8 CPUs during the run, other programs 64 %"],
    ),
    ("other_traffic", &["nvme0n1 read 3.00 GiB during the run, 1.00 GiB of it from gpuio."]),
    ("array_part_used", &["md0 (raid0)", "its 4 members", "nvme3n1 moved 9.00 GiB", "nvme4n1 0 B"]),
    ("path_idle", &["nvme0c0n1 carried 5.00 GiB", "nvme0c1n1 almost nothing", "policy is numa"]),
    ("cgroup_limits_io", &["limits reads on sda (8:0) to 30.0 MiB/s", "user.slice/io.max"]),
    ("depth_not_reached", &["256 I/Os", "sda had 3.2"]),
    ("other_gpu", &["GPU 0 carried 5.00 GiB/s", "4.00 GiB/s were loaded on GPU 12", "--gpu 0"]),
    ("link_disagrees", &["ib0 counted 1.00 GiB/s", "reads of 8.00 GiB/s", "another route"]),
];

#[test]
fn texts_contain_the_figures() {
    for WarningAbout { id, example, .. } in warning_kinds() {
        let figures = FIGURES.iter().find(|(known, _)| *known == id);
        let (_, figures) = figures.unwrap_or_else(|| panic!("no figures of {id}"));
        for figure in *figures {
            assert!(example.contains(figure), "{figure} not in: {example}");
        }
    }
}

/// The time that is named is enough for the percentiles at the rate of the run, and the reason is
/// the one that applies.
#[test]
fn a_short_run_names_its_reason_and_the_time_that_it_takes() {
    const SECOND: u64 = 1_000_000_000;
    let short = |elapsed_ns, ios, of_bytes| {
        WarningKind::RunTooShort { elapsed_ns, ios, of_files: false, of_bytes, bytes_of: None }
            .to_string()
    };
    // 80 I/Os per second: 10,000 for p99.9 take 125 s.
    let slow = short(10 * SECOND, 800, false);
    assert!(slow.starts_with("Only 800 I/Os were measured in 10.0 s. Too few"), "{slow}");
    assert!(slow.contains("p99 and p99.9") && slow.contains("--runtime 125s"), "{slow}");
    assert!(short(10 * SECOND, 800, true).contains("runtime=125s"));
    let quick = short(SHORT_NS - 1, 10_825_600, false);
    assert!(quick.starts_with("10,825,600 I/Os were measured in 990 ms. In such a"), "{quick}");
    assert!(!quick.contains("Too few") && quick.contains("--runtime 30s"), "{quick}");
    let both = short(120_000_000, 480, false);
    assert!(both.contains("Too few") && both.contains("In such a short run"), "{both}");
}

#[test]
fn what_is_as_long_as_its_files_gets_another_advice() {
    let short = |of_files, of_bytes| {
        let (elapsed_ns, ios) = (120_000_000, 480);
        WarningKind::RunTooShort { elapsed_ns, ios, of_files, of_bytes, bytes_of: None }.to_string()
    };
    let files = short(true, false);
    assert!(files.contains("Name more or larger files, or repeat the run"), "{files}");
    assert!(!files.contains("loops"), "a second pass is served by the page cache: {files}");
    let bytes = short(false, true);
    assert!(bytes.contains("raise io_size") && !bytes.contains("--runtime"), "{bytes}");
    let (elapsed_ns, ios, of_files, of_bytes) = (120_000_000, 480, false, true);
    for (key, word) in [
        (BytesOf::Size, "raise size or loops"),
        (BytesOf::IoSize, "raise io_size,"),
        (BytesOf::Loops, "raise loops,"),
        (BytesOf::NumberIos, "raise number_ios,"),
        (BytesOf::Scale, "raise scale, or leave out --try."),
    ] {
        let bytes_of = Some(key);
        let kind = WarningKind::RunTooShort { elapsed_ns, ios, of_files, of_bytes, bytes_of };
        assert!(kind.to_string().contains(word), "{kind}");
    }
    let (first_done_ns, last_done_ns) = (4_000_000_000, 9_500_000_000);
    let uneven = WarningKind::UnevenFinish { first_done_ns, last_done_ns, of_files: true };
    assert!(uneven.to_string().contains("Lower --bs"), "{uneven}");
}

#[test]
fn traffic_of_others_is_reported_and_nothing_is_claimed_that_was_not_observed() {
    let other = |direction: &str, ours_bytes| WarningKind::OtherTraffic {
        device: "vda".to_owned(),
        direction: direction.to_owned(),
        ours_bytes,
        device_bytes: 97_202_995,
    };
    let words = other("write", 0).to_string();
    let plain = "vda wrote 92.7 MiB during the run, none of it from gpuio. Another program or \
                 write-back was active";
    assert!(words.starts_with(plain), "{words}");
    assert!(
        other("read", 1 << 20)
            .to_string()
            .contains("1.00 MiB of it from gpuio. Another program was")
    );
    // Unknown here: the device's cache, the file system's cache, and the effect of a note.
    let cached = |known| {
        WarningKind::DirectWritesInDeviceCache { device: "vda".to_owned(), known }.to_string()
    };
    assert!(cached(false).contains("does not report whether vda has a volatile write cache"));
    assert!(cached(true).starts_with("vda has a volatile write cache"));
    let direct = WarningKind::DirectButCached { bytes: 2, from_storage: 0 }.to_string();
    assert!(direct.contains("this file system does not count"), "{direct}");
    assert!(!direct.contains("DEVICE"), "files in memory are on none: {direct}");
    let note = "mix_percent: taken as the percentage of reads".to_owned();
    let note = WarningKind::Note { note }.to_string();
    assert!(!note.contains("changed nothing"), "{note}");
}

/// A feed refuses `--threads`, and a replay has as many as the trace.
#[test]
fn threads_are_fewer_by_the_flags_of_their_load() {
    let words = |of| WarningKind::MoreThreadsThanCpus { threads: 4, cpus: 2, of }.to_string();
    assert!(words(ThreadsOf::Job).contains("Use at most --threads 2, with"));
    let feed = words(ThreadsOf::Feed);
    assert!(feed.contains("fewer --readers or --accelerators, or allow more CPUs."), "{feed}");
    let trace = words(ThreadsOf::Trace);
    assert!([feed, trace].iter().all(|text| !text.contains("--threads")));
}

/// Writes that are verified by reading back contain patterns; `pass` does not avoid that cost.
#[test]
fn reads_and_writes_get_the_same_advice_on_measuring_speed() {
    let words = |fio_headers| {
        let (between_ns, share) = (1, 0.1);
        let [reads, writes, refill] = [true; 3];
        WarningKind::WorkBetweenIos { between_ns, share, fio_headers, reads, writes, refill }
            .to_string()
    };
    let own = words(false);
    assert!(own.contains("--verify=pass for reads and --verify=rewrite for writes"), "{own}");
    let headers = words(true);
    assert!(
        !headers.contains("--verify=") && headers.contains("leave verification out"),
        "{headers}"
    );
}

#[test]
fn requests_larger_than_the_ios_were_merged_and_zero_is_no_panic() {
    let split = |io, request| WarningKind::SplitByBlockLayer {
        mean_io_bytes: io,
        mean_request_bytes: request,
        device: "sda".to_owned(),
        ahead: false,
    };
    assert!(split(4096, 65536).to_string().contains("merged"));
    assert!(split(0, 0).to_string().contains("--bs 1"));
    let unknown = WarningKind::BufferedWrites { bytes: 1, to_storage: None };
    assert!(unknown.to_string().contains("unknown"));
    let (bytes, others) = (64 << 20, Some(478 << 20));
    let more = WarningKind::BufferedWrites { bytes, to_storage: others }.to_string();
    assert!(more.contains("received 478 MiB during the run from all programs"), "{more}");
    let holes = |unwritten_bytes, reads| {
        WarningKind::Holes { hole_bytes: 0, unwritten_bytes, range_bytes: 4096, reads }.to_string()
    };
    assert!(holes(4096, true).contains("are allocated but were never written"), "no hole");
    assert!(holes(4096, false).contains("allocates"), "of writes");
    let stepped = |actual: &str| {
        let (requested, actual) = ("io_uring".to_owned(), actual.to_owned());
        WarningKind::EngineSteppedDown { requested, actual, why: Vec::new() }.to_string()
    };
    assert!(stepped("psync").contains("no reason was reported"));
    assert!(stepped("psync").ends_with("or request it: --engine psync."));
    let form = stepped("io_uring (fixed buffers)");
    assert!(form.ends_with("(fixed buffers). Remove the cause and repeat."), "{form}");
}

/// A command that takes no key gets no advice to set one, and no flag is in a text but by its
/// spelling there, or in a command that is named whole.
#[test]
fn a_key_that_is_refused_is_not_advised() {
    for kind in WarningKind::examples() {
        let words = kind.text(&|_| None);
        let own = words.replace("--dry-run", "").replace("cp --sparse=never", "");
        let outside = own.split("gpuio ").next().unwrap_or_default();
        assert!(!outside.contains("--"), "{words}");
        assert!(!words.contains(['<', '>']) && words.ends_with('.'), "{words}");
    }
    let (data_bytes, memory_bytes, of_files) = (1, 2, false);
    let fits = WarningKind::DataSetFitsMemory { data_bytes, memory_bytes, of_files };
    let feed = |key: &str| (key == "files").then(|| "--files".to_owned());
    let words = fits.text(&feed);
    let end = ". Make the data set twice as large as memory (--files, or more files).";
    assert!(words.ends_with(end), "{words}");
}
