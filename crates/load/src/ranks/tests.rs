//! Ranks as threads of one process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::ranks::channels::Channels;

/// A test's view of a rank from outside.
struct Outside {
    frozen: Arc<AtomicBool>,
    slow: Arc<AtomicU64>,
    aborted: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    reports: Arc<Mutex<Vec<String>>>,
}

fn clock() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// A clock that began a thousand seconds earlier.
fn other_clock() -> u64 {
    clock() + 1_000_000_000_000
}

fn limits(idle: Duration) -> Limits {
    let beat = Duration::from_millis(10);
    Limits { beat, silence: idle, idle, save: Duration::from_millis(500) }
}

/// Minutes: no test waits for it.
const NEVER: Duration = Duration::from_secs(600);

fn world(size: u32, limits: Limits) -> (Vec<Ranks>, Vec<Outside>) {
    let ends: Vec<_> = (0..size).map(|_| channel()).collect();
    let senders: Vec<_> = ends.iter().map(|(to, _)| to.clone()).collect();
    let each = ends.into_iter().zip(0..).map(|((_, from), rank): (_, u32)| {
        let outside = Outside {
            frozen: Arc::default(),
            slow: Arc::default(),
            aborted: Arc::default(),
            stop: Arc::default(),
            reports: Arc::default(),
        };
        let to = senders.clone();
        let (frozen, aborted) = (Arc::clone(&outside.frozen), Arc::clone(&outside.aborted));
        let slow = Arc::clone(&outside.slow);
        let link = Channels { rank, size, to, from, frozen, slow, aborted: Some(aborted) };
        let reports = Arc::clone(&outside.reports);
        let setup = Setup {
            clock: if rank == 2 { other_clock } else { clock },
            limits,
            stop: Arc::clone(&outside.stop),
            shows_all: true,
            report: Box::new(move |why| reports.lock().unwrap().push(why.to_owned())),
        };
        (Ranks::join(|| Ok(link), setup).unwrap(), outside)
    });
    each.unzip()
}

/// Runs the same program on all ranks; what each returned, by rank.
fn on_all<T: Send>(ranks: Vec<Ranks>, program: impl Fn(Ranks) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let program = &program;
        let started: Vec<_> =
            ranks.into_iter().map(|rank| scope.spawn(move || program(rank))).collect();
        started.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The end of a run that went well: rank 0 returns what it collected.
fn finish(ranks: Ranks) -> Vec<String> {
    let mut all = Vec::new();
    if ranks.rank() == 0 {
        ranks.collect(&mut |rank, collected| {
            all.push(match collected {
                Collected::Result(bytes) => format!("{rank}: {}", text(&bytes)),
                Collected::None(why) => format!("{rank} has none: {why}"),
                Collected::Lost(why) => format!("{rank} is lost: {why}"),
            });
        });
        all.sort();
        ranks.release(Left { code: 7, saved: true });
        ranks.leave(7);
    } else {
        let own = format!("result of {}", ranks.rank()).into_bytes();
        let left = ranks.deliver(Ok(own), "/journal").map(|left| left.code);
        all.push(format!("left: {left:?}"));
        ranks.leave(left.unwrap_or(1));
    }
    all
}

#[test]
fn ranks_exchange_in_order_and_rank_0_decides() {
    let (ranks, outside) = world(4, limits(NEVER));
    let all = on_all(ranks, |ranks| {
        let mut heard = Vec::new();
        for round in 0..3 {
            let what = format!("round {round}");
            let payload = format!("{round}.{}", ranks.rank()).into_bytes();
            let answer = ranks.exchange(&what, payload, |all| {
                let joined = all.iter().map(|one| text(one)).collect::<Vec<_>>().join(" ");
                Ok((0..4).map(|rank| format!("{rank}: {joined}").into_bytes()).collect())
            });
            heard.push(text(&answer.unwrap()));
        }
        (heard, finish(ranks))
    });
    for (rank, (heard, _)) in all.iter().enumerate() {
        let expected = |round| format!("{rank}: {round}.0 {round}.1 {round}.2 {round}.3");
        assert_eq!(heard, &[expected(0), expected(1), expected(2)]);
    }
    assert_eq!(all[0].1, ["1: result of 1", "2: result of 2", "3: result of 3"]);
    assert_eq!(all[3].1, ["left: Ok(7)"]);
    assert!(outside.iter().all(|one| !one.aborted.load(Ordering::Relaxed)));
}

#[test]
fn a_decision_against_it_or_a_failure_ends_all_with_its_reason() {
    for failing in [0, 2] {
        let (ranks, outside) = world(3, limits(NEVER));
        let all = on_all(ranks, |ranks| {
            ranks.name((0..3).map(|rank| format!("rank {rank} of a test")).collect());
            let own = ranks.rank();
            let answer = match failing == own && own != 0 {
                true => Err(ranks.fail("no such file", 3)),
                false => {
                    ranks.exchange("plan", Vec::new(), |_| Err(Ended("they differ".to_owned(), 2)))
                }
            };
            let Ended(why, code) = answer.unwrap_err();
            assert_eq!(code, if failing == 0 { 2 } else { 3 });
            (why, finish(ranks))
        });
        let expected = match failing {
            0 => ["they differ"; 3],
            _ => {
                ["rank 2 of a test: no such file", "rank 2 of a test: no such file", "no such file"]
            }
        };
        let whys: Vec<&str> = all.iter().map(|(why, _)| why.as_str()).collect();
        assert_eq!(whys, expected);
        assert!(outside.iter().all(|one| one.stop.load(Ordering::Relaxed)));
        // Nothing hangs: what there is is still collected, and the job is left as it should be.
        assert_eq!(all[0].1, ["1: result of 1", "2: result of 2"]);
        assert!(outside.iter().all(|one| !one.aborted.load(Ordering::Relaxed)));
    }
}

#[test]
fn clock_offsets_are_found_within_their_bound() {
    let (ranks, _) = world(3, limits(NEVER));
    let all = on_all(ranks, |ranks| {
        let offsets = (ranks.rank() == 0).then(|| ranks.clock_offsets().unwrap());
        finish(ranks);
        offsets
    });
    let offsets = all[0].clone().unwrap();
    assert_eq!(offsets[0], ClockOffset::default());
    for (offset, expected) in offsets.iter().zip([0_i64, 0, 1_000_000_000_000]) {
        let off = (offset.offset_ns - expected).unsigned_abs();
        assert!(off <= offset.bound_ns, "{offset:?}");
    }
}

#[test]
fn a_rank_that_is_silent_ends_the_job_and_the_others_are_collected() {
    let (ranks, outside) = world(3, limits(Duration::from_millis(300)));
    let all = on_all(ranks, |ranks| {
        let own = ranks.rank();
        if own == 1 {
            outside[1].frozen.store(true, Ordering::Relaxed);
        }
        let ended = ranks.exchange("start", Vec::new(), |_| Ok(vec![Vec::new(); 3])).unwrap_err();
        (ended.0, finish(ranks))
    });
    assert!(all[0].0.starts_with("rank 1 hangs: nothing was heard of it"), "{:?}", all[0]);
    assert!(all[2].0.starts_with("rank 1 hangs"), "{:?}", all[2]);
    let lost = format!("1 is lost: {}", all[0].0);
    assert_eq!(all[0].1, [lost, "2: result of 2".to_owned()]);
    assert!(outside[0].aborted.load(Ordering::Relaxed), "the job is ended by MPI_Abort");
    let reports = outside[0].reports.lock().unwrap();
    assert_eq!(*reports, std::slice::from_ref(&all[0].0), "it is reported at once, and once");
}

/// Ranks meet, rank 0 has each slow down, and they meet again.
fn meet_in_spite_of(size: u32, silence: Duration, disturb: impl Fn(&[Outside]) + Sync) {
    let (ranks, outside) = world(size, Limits { silence, ..limits(NEVER) });
    let all = on_all(ranks, |ranks| {
        let answers = || vec![Vec::new(); size as usize];
        let meet = || ranks.exchange("meeting", Vec::new(), |_| Ok(answers())).map(drop);
        let before = meet();
        if ranks.rank() == 0 {
            disturb(&outside);
        }
        (before, meet(), finish(ranks))
    });
    assert_eq!((&all[0].0, &all[0].1), (&Ok(()), &Ok(())));
    assert_eq!(all[0].2.len(), size as usize - 1);
    assert!(all[0].2.iter().all(|result| result.contains(": result of ")), "{:?}", all[0].2);
}

#[test]
fn ranks_that_were_all_stopped_and_go_on_do_not_hang() {
    let silence = Duration::from_secs(2);
    meet_in_spite_of(3, silence, |ranks| {
        // Rank 0 goes on first, and finds no message.
        ranks.iter().zip([6000, 6100, 6100]).for_each(|(rank, stops)| {
            rank.slow.store(stops, Ordering::Relaxed);
        });
        std::thread::sleep(Duration::from_millis(500));
        ranks.iter().for_each(|rank| rank.slow.store(0, Ordering::Relaxed));
        std::thread::sleep(silence * 3);
    });
}

#[test]
fn a_rank_that_receives_slower_than_the_others_send_does_not_hang() {
    let silence = Duration::from_secs(2);
    meet_in_spite_of(4, silence, |ranks| {
        ranks[0].slow.store(15, Ordering::Relaxed);
        std::thread::sleep(silence * 3);
        ranks[0].slow.store(0, Ordering::Relaxed);
    });
}

#[test]
fn a_rank_in_which_no_io_completes_hangs() {
    let (ranks, _) = world(3, limits(Duration::from_millis(400)));
    let all = on_all(ranks, |ranks| {
        if ranks.rank() == 2 {
            ranks.activity().enter(Stage::Running);
            ranks.activity().expect_ios(true);
            // Its thread is somewhere in a read.
            while ranks.ended().is_none() {
                std::thread::yield_now();
            }
        }
        let answer = ranks.exchange("stopped", Vec::new(), |_| Ok(vec![Vec::new(); 3]));
        (answer.unwrap_err().0, finish(ranks))
    });
    let why = &all[0].0;
    assert!(why.starts_with("rank 2 hangs: in the measured time, and no I/O completed"), "{why}");
    assert!(all[0].1.contains(&"1: result of 1".to_owned()), "{:?}", all[0].1);
}

#[test]
fn ranks_at_different_exchanges_are_named() {
    let (ranks, _) = world(2, limits(NEVER));
    let all = on_all(ranks, |ranks| {
        let what = if ranks.rank() == 0 { "plan" } else { "start" };
        let answer = ranks.exchange(what, Vec::new(), |_| Ok(vec![Vec::new(); 2])).unwrap_err();
        (answer.0, finish(ranks))
    });
    assert_eq!(all[0].0, "rank 1 is at 'start', rank 0 at 'plan'");
    assert_eq!(all[1].0, all[0].0);
}

#[test]
fn a_process_that_dies_is_named() {
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let (ranks, outside) = world(3, limits(NEVER));
    let victim = Mutex::new(&mut child);
    let all = on_all(ranks, |ranks| {
        if ranks.rank() == 1 {
            ranks.watch(2, pid);
            let mut victim = victim.lock().unwrap();
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
        if ranks.rank() == 2 {
            // Nothing is heard of a dead process.
            std::mem::forget(ranks);
            return String::new();
        }
        let answer = ranks.exchange("stopped", Vec::new(), |_| Ok(vec![Vec::new(); 3]));
        let why = answer.unwrap_err().0;
        ranks.leave(1);
        why
    });
    assert_eq!((all[0].as_str(), all[1].as_str()), ("rank 2 died", "rank 2 died"));
    assert!(outside[0].aborted.load(Ordering::Relaxed));
}

/// The child of a rank: the other end of its socket, in the same process.
fn child(socket: std::os::fd::OwnedFd, rank: u32, size: u32) -> Ranks {
    let setup = Setup {
        clock,
        limits: limits(NEVER),
        stop: Arc::default(),
        shows_all: false,
        report: Box::new(|_| {}),
    };
    Ranks::join(move || Relayed::new(socket, rank, size, "relay".to_owned()), setup).unwrap()
}

#[test]
fn children_of_some_ranks_are_ranks_among_themselves() {
    let (ranks, _outside) = world(3, limits(NEVER));
    // Rank 1 has no child; that of rank 2 is rank 1 among the children.
    let members = vec![0, 2];
    let said = on_all(ranks, |own| {
        own.rest(true);
        let place = members.iter().position(|member| *member == own.rank());
        let relay = place.map(|_| own.relay(7, members.clone()).unwrap());
        own.exchange("order", Vec::new(), |all| Ok(vec![Vec::new(); all.len()])).unwrap();
        let mut said = String::new();
        if let (Some((relay, socket)), Some(place)) = (relay, place) {
            let child = child(socket, u32::try_from(place).unwrap(), 2);
            assert_eq!(child.library(), "relay");
            let long = vec![b'x'; 3 << 20];
            let answer = child.exchange("hello", long, |all| {
                assert!(all.iter().all(|one| one.len() == 3 << 20));
                let offsets = child.clock_offsets().unwrap();
                assert_eq!(offsets.len(), 2);
                Ok(vec![b"to 0".to_vec(), b"to 1".to_vec()])
            });
            said = text(&answer.unwrap());
            let left = Left { code: 0, saved: true };
            if place == 0 {
                let mut results = Vec::new();
                child.collect(&mut |rank, one| results.push((rank, one)));
                assert_eq!(results, [(1, Collected::Result(b"result".to_vec()))]);
                child.release(left);
            } else {
                assert_eq!(child.deliver(Ok(b"result".to_vec()), ""), Ok(left));
            }
            child.leave(0);
            assert!(!relay.is_aborted());
            relay.end();
        }
        own.exchange("ran", Vec::new(), |all| Ok(vec![Vec::new(); all.len()])).unwrap();
        leave_all(own);
        said
    });
    assert_eq!(said, ["to 0", "", "to 1"]);
}

/// As on a busy machine, where a rank looks for messages less often than heartbeats come.
#[test]
fn a_rank_that_rests_hears_what_is_behind_many_heartbeats() {
    let (ranks, _outside) = world(2, Limits { beat: Duration::from_millis(1), ..limits(NEVER) });
    on_all(ranks, |own| {
        own.rest(own.rank() == 1);
        std::thread::sleep(Duration::from_millis(200));
        for _ in 0..3 {
            own.exchange("ran", Vec::new(), |all| Ok(vec![Vec::new(); all.len()])).unwrap();
        }
        leave_all(own);
    });
}

#[test]
fn children_that_are_aborted_are_so_on_all_ranks() {
    let (ranks, _outside) = world(3, limits(NEVER));
    on_all(ranks, |own| {
        let (relay, socket) = own.relay(0, vec![0, 1, 2]).unwrap();
        own.exchange("order", Vec::new(), |all| Ok(vec![Vec::new(); all.len()])).unwrap();
        let link = Relayed::new(socket, own.rank(), 3, String::new()).unwrap();
        if own.rank() == 1 {
            link.abort(1);
        }
        let began = Instant::now();
        while !relay.is_aborted() {
            assert!(began.elapsed() < NEVER);
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(link);
        relay.end();
        own.exchange("ran", Vec::new(), |all| Ok(vec![Vec::new(); all.len()])).unwrap();
        leave_all(own);
    });
}

#[test]
fn a_rank_that_ends_early_does_not_leave_others_waiting() {
    for early in [0, 1] {
        let (ranks, _outside) = world(2, limits(NEVER));
        on_all(ranks, |own| {
            if own.rank() == early {
                leave_all(own);
                return;
            }
            let ended = own.exchange("more", Vec::new(), |all| Ok(vec![Vec::new(); all.len()]));
            assert!(ended.unwrap_err().0.contains("end"), "it learns why");
            leave_all(own);
        });
    }
}

/// The end of a job without results.
fn leave_all(own: Ranks) {
    if own.rank() == 0 {
        own.collect(&mut |_, _| {});
        own.release(Left { code: 0, saved: false });
    } else {
        let _ = own.deliver(Err("none".to_owned()), "");
    }
    own.leave(0);
}
