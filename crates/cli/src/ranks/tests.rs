//! The first exchange between processes of different versions, as threads of one process.

use std::sync::Arc;
use std::sync::mpsc::channel;

use gpuio_load::ranks::Left;
use gpuio_load::ranks::channels::Channels;

use super::*;

fn two() -> [Ranks; 2] {
    let [(to_first, first), (to_second, second)] = [channel(), channel()];
    let to = vec![to_first, to_second];
    let join = |rank, from| {
        let (to, frozen, slow) = (to.clone(), Arc::default(), Arc::default());
        let link = Channels { rank, size: 2, to, from, frozen, slow, aborted: None };
        let setup = Setup {
            clock: gpuio_watch::page::monotonic_ns,
            limits: Limits::of(Duration::from_secs(600), 2),
            stop: Arc::default(),
            shows_all: true,
            report: Box::new(|_| {}),
        };
        Ranks::join(move || Ok(link), setup).unwrap()
    };
    [join(0, first), join(1, second)]
}

/// Why the run ended on both ranks, of which the second sends this first.
fn refusals(second: &[u8]) -> [Ended; 2] {
    let [first, other] = two();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            let ended = other.exchange("hello", second.to_vec(), |_| Ok(Vec::new())).unwrap_err();
            let _ = other.deliver(Err("it was sent back".to_owned()), "");
            other.leave(ended.1);
            ended
        });
        let ended = hello(&first, &own_hello()).unwrap_err();
        first.collect(&mut |_, _| {});
        first.release(Left { code: ended.1, saved: false });
        first.leave(ended.1);
        [ended, other.join().unwrap()]
    })
}

#[test]
fn ranks_of_different_versions_are_sent_back_and_both_are_named() {
    let own = env!("CARGO_PKG_VERSION");
    let older = Hello { version: "0.0.9".to_owned(), host: "n2".to_owned(), ..own_hello() };
    let expected = format!(
        "rank 1 (host n2) runs gpuio 0.0.9, rank 0 runs {own}; install the same version on all \
         hosts"
    );
    assert_eq!(refusals(&to_bytes(&older)), [Ended(expected.clone(), 2), Ended(expected, 2)]);
    // The number of a version that says something else first is not known.
    let [first, other] = refusals(b"{\"release\": 7}");
    assert_eq!(first, other);
    assert!(first.0.contains("rank 1 runs another version of gpuio than rank 0"), "{first}");
}
