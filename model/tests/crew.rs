//! Threads of our own, asleep while there is nothing to do: `crates/transfer/src/crew/hands.rs`.

use std::sync::Arc;

use loom::thread;

use self::source::{Hands, Rest};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{Row, holds};

#[path = "../../crates/transfer/src/crew/hands.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

/// What the streams' sources start threads by.
pub use crate::spawn::spawn;

pub const ROWS: &[Row] = &[
    holds("work that is told of is done by who sleeps", one),
    holds("and by who looks for a while first", one_close),
    holds("two pieces of work for two who sleep", two),
    holds("one who was woken wakes the other", chain),
    holds("no more threads are started than may be", started),
];

/// Pieces of work that nobody has taken. No access to it orders anything.
#[derive(Default)]
struct Line(Option<AtomicU32>);

impl Line {
    fn new() -> Self {
        Self(Some(AtomicU32::new(0)))
    }

    fn word(&self) -> &AtomicU32 {
        self.0.as_ref().unwrap()
    }

    fn take(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.word().fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// As `Crew::hand` does, until it has done so many.
fn hand(hands: &Hands, line: &Line, many: u32, close: bool, wakes: bool) {
    let mut rest = Rest::new();
    if close {
        rest.worked();
    }
    let mut done = 0;
    while done < many {
        let heard = hands.heard();
        // As `Crew::pick` looks at the line's length before it takes its lock.
        if line.word().load(Ordering::SeqCst) > 0 && line.take() {
            if wakes && rest.slept() && line.word().load(Ordering::SeqCst) > 0 {
                hands.wake_more();
            }
            rest.worked();
            done += 1;
        } else {
            hands.rest(&mut rest, heard);
        }
    }
}

/// Work for so many threads, told of at once or one by one.
fn work(
    threads: u32,
    close: bool,
    wakes: bool,
    tell: impl Fn(&Hands, &Line) + Send + Sync + Copy + 'static,
) {
    crate::interrupted(if threads == 1 { 3 } else { 2 }, move || {
        let (hands, line) = (Arc::new(Hands::new(threads)), Arc::new(Line::new()));
        let all: Vec<_> = (0..threads)
            .map(|_| {
                let (hands, line) = (Arc::clone(&hands), Arc::clone(&line));
                thread::spawn(move || hand(&hands, &line, 1, close, wakes))
            })
            .collect();
        tell(&hands, &line);
        all.into_iter().for_each(|hand| hand.join().unwrap());
    });
}

/// As `Crew::line_up` and `Hands::ring` behind it.
fn add(hands: &Hands, line: &Line) {
    line.word().fetch_add(1, Ordering::SeqCst);
    hands.ring(1);
}

fn one() {
    work(1, false, false, add);
}

fn one_close() {
    work(1, true, false, add);
}

fn two() {
    work(2, false, false, |hands, line| {
        add(hands, line);
        add(hands, line);
    });
}

fn chain() {
    work(2, false, true, |hands, line| {
        line.word().fetch_add(2, Ordering::SeqCst);
        hands.ring(1);
    });
}

fn started() {
    crate::often(|| {
        let (hands, count) = (Arc::new(Hands::new(1)), Arc::new(AtomicU32::new(0)));
        let (ours, theirs) = (Arc::clone(&hands), Arc::clone(&count));
        let make = |count: &Arc<AtomicU32>| {
            let count = Arc::clone(count);
            move || {
                let count = Arc::clone(&count);
                move || assert_eq!(count.fetch_add(1, Ordering::Relaxed), 0, "one too many")
            }
        };
        let other = thread::spawn(move || {
            ours.start(1, make(&theirs));
            ours.are_there()
        });
        hands.start(1, make(&count));
        other.join().unwrap();
        assert!(hands.are_there());
        crate::spawn::end_all();
    });
}
