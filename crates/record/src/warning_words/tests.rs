use super::examples::all;
use crate::WarningKind;

#[test]
fn every_warning_is_two_to_four_sentences_on_one_line_and_names_a_flag_or_command() {
    for kind in all() {
        let words = kind.to_string();
        let sentences = words.matches(". ").count() + 1;
        assert!((2..=4).contains(&sentences), "{sentences} sentences: {words}");
        assert!(words.ends_with('.'), "{words}");
        assert!(!words.contains('\n') && !words.contains("  "), "{words}");
        assert!(words.contains("--"), "no next step: {words}");
        assert!(words.len() < 420, "{} bytes: {words}", words.len());
    }
}

#[test]
fn texts_contain_the_figures() {
    let contains = |kind: WarningKind, figures: &[&str]| {
        let words = kind.to_string();
        for figure in figures {
            assert!(words.contains(figure), "{figure} not in: {words}");
        }
    };
    let mut kinds = all().into_iter();
    let mut next = || kinds.next().unwrap();
    contains(next(), &["1.00 MiB of the 10.0 GiB", "--direct", "--size"]);
    contains(next(), &["2.00 MiB of the 10.0 GiB", "gpuio bench"]);
    contains(next(), &["12.0 MiB of 64.0 MiB are holes", "not served by a device", "--directory"]);
    contains(next(), &["11.0 GiB", "never that of storage", "104 ms", "--direct"]);
    contains(next(), &["3.00 GiB of the samples", "5.00 GiB from storage", "only the latter"]);
    contains(next(), &["tmpfs", "--buffered"]);
    contains(next(), &["--depth 32", "psync", "--threads"]);
    contains(next(), &["libaio", "--direct"]);
    contains(next(), &["1.00 MiB", "244 KiB", "nvme0n1", "split", "--bs 128K"]);
    contains(next(), &["4.00 GiB", "at most 1.00 GiB of them", "--sync"]);
    contains(next(), &["O_DSYNC"]);
    contains(next(), &["nvme0n1", "--runtime"]);
    contains(next(), &["480 I/Os in 120 ms", "--runtime 30s"]);
    contains(next(), &["480 I/Os in 120 ms", "--set loops=10"]);
    contains(next(), &["8.00 GiB", "64.0 GiB"]);
    contains(next(), &["io_uring", "psync", "kernel.io_uring_disabled is 2"]);
    contains(next(), &["once: 6.00 s stopped", "the 32 I/Os", "--runtime"]);
    contains(next(), &["73.1 %", "--rate"]);
    contains(next(), &["1.20", "48.0", "250 ms", "--rate"]);
    contains(next(), &["iops:2%", "3.210 %", "--runtime"]);
    contains(next(), &["4.00 s", "9.50 s", "--runtime"]);
    contains(next(), &["4.00 s", "9.50 s", "--bs"]);
    contains(next(), &["software GPU"]);
    contains(next(), &["eio:offset=1M"]);
    contains(next(), &["3.00 s", "25.0 %"]);
    contains(next(), &["64 threads shared 8 CPUs", "--threads 8"]);
    contains(next(), &["node 0 served GPU 3", "node 1", "--numa 1"]);
    contains(next(), &["skip_bufregister has no effect on path host."]);
    contains(next(), &["32.0 GiB for the 1.00 GiB", "around each small read", "--direct"]);
    contains(next(), &["nvme0n1 read 3.00 GiB during the run, 1.00 GiB of it from gpuio."]);
    contains(next(), &["md0 (raid0)", "of its 4 members", "nvme3n1 moved 9.00 GiB", "nvme4n1 0 B"]);
    contains(next(), &["nvme0c0n1 carried 5.00 GiB", "nvme0c1n1 almost nothing", "policy is numa"]);
    contains(next(), &["256 I/Os", "sda had 3.2"]);
    contains(next(), &["GPU 0 carried 5.00 GiB/s", "4.00 GiB/s were loaded on GPU 12", "--gpu 0"]);
    contains(next(), &["ib0 counted 1.00 GiB/s", "reads of 8.00 GiB/s", "another route"]);
    contains(next(), &["20.0 GiB/s", "Other programs use the link too"]);
    assert!(kinds.next().is_none());
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
    assert!(direct.contains("or the counter does not cover this file system"), "{direct}");
    let note = "mix_percent: taken as the percentage of reads".to_owned();
    let note = WarningKind::Note { note }.to_string();
    assert!(!note.contains("changed nothing"), "{note}");
}

/// Writes that are verified by reading back contain patterns; `pass` does not avoid that cost.
#[test]
fn reads_and_writes_get_the_same_advice_on_measuring_speed() {
    let words = WarningKind::WorkBetweenIos { between_ns: 1, share: 0.1 }.to_string();
    assert!(words.contains("--verify=pass for reads and --verify=rewrite for writes"), "{words}");
}

#[test]
fn requests_larger_than_the_ios_were_merged_and_zero_is_no_panic() {
    let split = |io, request| WarningKind::SplitByBlockLayer {
        mean_io_bytes: io,
        mean_request_bytes: request,
        device: "sda".to_owned(),
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
    let silent = WarningKind::EngineSteppedDown {
        requested: "a".to_owned(),
        actual: "b".to_owned(),
        why: Vec::new(),
    };
    assert!(silent.to_string().contains("no reason was reported"));
}
