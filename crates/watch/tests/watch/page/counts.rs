//! Readers find the counts of writers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpuio_base::stat::Percentile;
use gpuio_watch::page::format::{Shown, json, text};
use gpuio_watch::page::read::Owner;
use gpuio_watch::page::{Direction, LivePageRoot, NOT_COUNTED, size_class};
use proptest::prelude::*;

use super::{directory, key, own, page, pages};

#[test]
fn every_count_arrives_and_the_page_goes_with_its_writer() {
    let (_dir, pages) = pages();
    let page = page(&pages, 2);
    let mut read = page.worker_slot(&key(Some(3), "gather")).unwrap();
    let write = page.worker_slot(&key(None, "host")).unwrap();
    read.opened(2);
    read.begin(32, 1_000_000_000);
    read.add(Direction::Read, 4096, 50_000, false);
    read.add(Direction::Read, 1 << 20, 150_000, true);
    read.now(3_000_000_000, 5);
    write.fail(Direction::Write);
    let found = own(&pages);
    assert_eq!((found.owner, found.removed), (Owner::Runs, false));
    let snapshot = found.page.unwrap();
    assert_eq!((snapshot.program.as_str(), snapshot.paths.len()), ("test", 2));
    let total = snapshot.total();
    assert_eq!(
        (total.read.ios(), total.read.bytes, total.read.unaligned),
        (2, 4096 + (1 << 20), 1)
    );
    assert_eq!((total.write.ios(), total.write.failed), (0, 1));
    assert_eq!((total.files, total.slots, total.in_flight, total.threads), (2, 32, 5, 2));
    assert_eq!(total.read.mean_ns(), Some(100_000.0));
    assert_eq!(total.seconds(), Some(2.0));
    // Calls are counted when they end: one that began before may come later.
    read.began(500_000_000);
    read.began(700_000_000);
    assert_eq!(own(&pages).page.unwrap().total().seconds(), Some(2.5));
    let sizes: Vec<usize> = (0..16).filter(|&class| total.read.sizes[class] > 0).collect();
    assert_eq!(sizes, [size_class(4096), size_class(1 << 20)]);
    let p50 = total.read.percentile_ns(Percentile::MEDIAN).unwrap();
    assert!(p50.abs_diff(50_000) <= 50_000 / 32 + 1, "{p50}");
    let gpu = &snapshot.gpus()[0];
    assert_eq!((gpu.gpu, gpu.pci.as_str(), gpu.path.as_str()), (Some(3), "0000:03:00.0", "gather"));
    drop(read);
    assert_eq!(own(&pages).page.unwrap().total().slots, 0, "a thread that ended has no I/O slots");
    drop(write);
    drop(page);
    assert_eq!(std::fs::read_dir(directory(&pages)).unwrap().count(), 0);
}

/// The slowest of 30 I/Os is no p99: the rule is that of records.
#[test]
fn a_percentile_of_too_few_ios_is_absent_with_the_reason() {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    let slot = page.worker_slot(&key(None, "host")).unwrap();
    let said = |ios: u64| {
        (0..ios).for_each(|_| slot.add(Direction::Read, 4096, 50_000, false));
        let snapshot = own(&pages).page.unwrap();
        let (owner, user, since) = (&Owner::Runs, "user", "now");
        let shown = Shown { snapshot: &snapshot, owner, user, command: None, since, earlier: None };
        let of = |name: &str| json::value(&shown, 1)["read"]["latency_ns"][name].is_null();
        let absent = ["p50", "p90", "p99", "p99_9"].map(of);
        (absent, text::page(&shown, 1).unbroken())
    };
    let (absent, page) = said(30);
    assert_eq!(absent, [false, true, true, true], "{page}");
    assert!(page.contains("- too few I/Os: p90 takes 100, p99 takes 1000, p99.9 takes 10000"));
    let (absent, page) = said(970);
    assert_eq!(absent, [false, false, false, true], "{page}");
    assert!(page.contains("- too few I/Os: p99.9 takes 10000\n"), "{page}");
    let (absent, page) = said(9_000);
    assert_eq!(absent, [false; 4], "{page}");
    assert!(!page.contains("too few"), "{page}");
}

/// A thread whose bytes take several paths is one thread of the process, and one of each path.
#[test]
fn a_thread_with_several_slots_is_counted_once() {
    let (_dir, pages) = pages();
    let page = page(&pages, 4);
    let threads = || {
        let snapshot = own(&pages).page.unwrap();
        let each = snapshot.paths.iter().map(|path| path.threads).collect::<Vec<_>>();
        (snapshot.total().threads, each)
    };
    let one = [page.worker_slot(&key(None, "a")), page.further_slot(&key(None, "b"))];
    let other = page.worker_slot(&key(None, "b"));
    assert_eq!(threads(), (2, vec![1, 2]));
    drop(one);
    assert_eq!(threads(), (1, vec![0, 1]));
    drop(other);
    assert_eq!(threads(), (0, vec![0, 0]));
}

/// Programs on gpuio's libcufile have values that are paths and verdicts elsewhere.
#[test]
fn text_names_what_moved_the_bytes_and_json_keeps_its_values() {
    let (_dir, pages) = pages();
    let page = page(&pages, 3);
    for (path, engine) in [("kernel", "cached"), ("copy", "direct"), ("cached", "psync")] {
        let own = gpuio_watch::page::Key { engine: engine.to_owned(), ..key(Some(0), path) };
        page.worker_slot(&own).unwrap().add(Direction::Read, 4096, 1000, false);
    }
    let found = own(&pages);
    let (snapshot, owner) = (&found.page.unwrap(), &found.owner);
    let since = "2026-01-01";
    let shown = Shown { snapshot, owner, user: "me", command: None, since, earlier: None };
    let printed = text::page(&shown, 3).unbroken();
    for [path, engine] in
        [["GPU kernel", "page cache"], ["copy engine", "storage"], ["cached", "psync"]]
    {
        let line = printed.lines().find(|line| line.contains(&format!(" {path} ")));
        assert!(line.is_some_and(|line| line.contains(&format!(" {engine} "))), "{printed}");
    }
    assert!(text::list(&[shown]).unbroken().contains("GPU kernel,copy engine,cached"));
    let kept = json::value(&shown, 3).to_string();
    assert!(kept.contains("\"kernel\"") && kept.contains("\"direct\""), "{kept}");
}

#[test]
fn what_nobody_counts_is_not_zero() {
    let (_dir, pages) = pages();
    let page = page(&pages, 2);
    let cufile = gpuio_watch::page::Key { registrations_unknown: true, ..key(Some(0), "gds") };
    let _lanes =
        (page.worker_slot(&cufile).unwrap(), page.worker_slot(&key(Some(1), "staged")).unwrap());
    let snapshot = own(&pages).page.unwrap();
    let known: Vec<Option<u64>> = snapshot.gpus().iter().map(|gpu| gpu.registered).collect();
    assert_eq!(known, [None, Some(0)]);
    assert_eq!(snapshot.total().registered, None, "{NOT_COUNTED} is never added up");
}

#[test]
fn lanes_are_used_again_and_shared_when_they_run_out() {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    let same = key(None, "host");
    for _ in 0..3 {
        page.worker_slot(&same).unwrap().add(Direction::Read, 1, 1, false);
    }
    let worker_slots: Vec<_> = (0..50).map(|_| page.worker_slot(&same).unwrap()).collect();
    std::thread::scope(|scope| {
        for slot in &worker_slots {
            scope.spawn(|| (0..1000).for_each(|_| slot.add(Direction::Read, 1, 1, false)));
        }
    });
    let total = own(&pages).page.unwrap().total();
    assert_eq!((total.read.ios(), total.read.bytes, total.threads), (50_003, 50_003, 50));
    // One slot of its own and four shared: a sixth key gets none.
    let others: Vec<_> = (1..5).map(|gpu| page.worker_slot(&key(Some(gpu), "host"))).collect();
    assert_eq!(others.iter().filter(|slot| slot.is_some()).count(), 3);
}

/// Writers write while a reader reads: no count goes back, and none is more than was counted.
fn writers_and_a_reader(pages: &LivePageRoot, sizes: &[u64], rounds: u64) {
    let page = page(pages, 4);
    let (begun, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let each: u64 = sizes.iter().sum();
    let all = 4 * rounds;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let slot = page.worker_slot(&key(Some(0), "staged")).unwrap();
                let begun = &begun;
                scope.spawn(move || {
                    for _ in 0..rounds {
                        begun.fetch_add(1, Ordering::SeqCst);
                        for &size in sizes {
                            slot.add(Direction::Read, size, size, false);
                        }
                    }
                    slot
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut last = (0, 0);
            while !done.load(Ordering::SeqCst) {
                let read = own(pages).page.unwrap().total().read;
                let most = begun.load(Ordering::SeqCst);
                assert!(read.ios() >= last.0 && read.bytes >= last.1, "a count went back");
                assert!(read.bytes <= most * each, "{} of {most} rounds", read.bytes);
                assert!(read.ios() <= most * sizes.len() as u64);
                last = (read.ios(), read.bytes);
            }
        });
        let worker_slots: Vec<_> =
            writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap();
        drop(worker_slots);
    });
    let read = own(pages).page.unwrap().total().read;
    assert_eq!((read.ios(), read.bytes), (all * sizes.len() as u64, all * each));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn counts_never_go_back(sizes in prop::collection::vec(1_u64..1 << 24, 1..8)) {
        let (_dir, pages) = pages();
        writers_and_a_reader(&pages, &sizes, 3000);
    }
}
