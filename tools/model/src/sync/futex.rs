//! futex(2): `rustix::thread::futex` to the sources.
//!
//! Looking at the word and lying down is one step against every wake of that word. The kernel has a
//! full barrier before it looks, and one before it looks for sleepers ("kernel/futex/waitwake.c"),
//! so a program's accesses on either side are in order with it.

use super::atomic::{AtomicU32, Ordering, fence};

#[derive(Debug, Clone, Copy)]
pub struct Flags;

impl Flags {
    pub const PRIVATE: Flags = Flags;
}

#[derive(Debug, Clone, Copy)]
pub struct Timespec {
    pub tv_sec: i64,
    pub tv_nsec: i64,
}

/// Why a call came back at once: no more is asked of it.
#[derive(Debug)]
pub struct Refused;

/// Who lies down, by the word's address, and who was woken.
#[derive(Default)]
struct Queue {
    next: usize,
    asleep: Vec<(usize, usize)>,
    woken: Vec<usize>,
    over: bool,
}

/// Ends threads that have no end of their own, where they would sleep.
#[derive(Debug)]
pub struct Over;

/// Ends all threads that sleep, or would.
pub fn over() {
    let (lock, changed) = &*QUEUE;
    lock.lock().unwrap().over = true;
    changed.notify_all();
}

loom::lazy_static! {
    static ref QUEUE: (loom::sync::Mutex<Queue>, loom::sync::Condvar) =
        (loom::sync::Mutex::new(Queue::default()), loom::sync::Condvar::new());
}

fn place(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

/// Sleeps until it is woken, if the word holds `expected`. With a time it may wake up at once,
/// which every user of a time has to expect.
pub fn wait(
    word: &AtomicU32,
    _: Flags,
    expected: u32,
    time: Option<&Timespec>,
) -> Result<(), Refused> {
    let (lock, changed) = &*QUEUE;
    let mut queue = lock.lock().unwrap();
    if queue.over {
        drop(queue);
        std::panic::resume_unwind(Box::new(Over));
    }
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) != expected {
        return Err(Refused);
    }
    if time.is_some() {
        drop(queue);
        loom::thread::yield_now();
        return Err(Refused);
    }
    let me = queue.next;
    queue.next += 1;
    queue.asleep.push((place(word), me));
    while !queue.woken.contains(&me) {
        queue = changed.wait(queue).unwrap();
        if queue.over {
            drop(queue);
            std::panic::resume_unwind(Box::new(Over));
        }
    }
    Ok(())
}

/// Wakes so many of those who sleep on the word.
pub fn wake(word: &AtomicU32, _: Flags, count: u32) -> Result<usize, Refused> {
    fence(Ordering::SeqCst);
    let (lock, changed) = &*QUEUE;
    let mut queue = lock.lock().unwrap();
    let mut woken = 0;
    while woken < count
        && let Some(at) = queue.asleep.iter().position(|(at, _)| *at == place(word))
    {
        let (_, who) = queue.asleep.remove(at);
        queue.woken.push(who);
        woken += 1;
    }
    if woken > 0 {
        changed.notify_all();
    }
    Ok(woken as usize)
}
