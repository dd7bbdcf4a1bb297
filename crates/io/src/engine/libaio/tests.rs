use std::time::{Duration, Instant};

use super::abi::Context;
use super::hint;
use std::io;

#[test]
fn exhaustion_names_the_limit() {
    let text = hint(&io::Error::from_raw_os_error(libc::EAGAIN));
    assert!(text.contains("fs.aio-max-nr"), "{text}");
}

#[test]
fn an_empty_ring_has_no_event() {
    let Ok(mut context) = Context::new(4) else {
        eprintln!("skipped: no AIO here");
        return;
    };
    assert!(context.next_event().is_none());
    let mut events = Vec::new();
    context.get_events(0, 4, None, &mut events).unwrap();
    assert!(events.is_empty());
    // Nothing is out: a wait for an event ends with its time.
    let (timeout, began) = (Duration::from_millis(5), Instant::now());
    context.get_events(1, 4, Some(timeout), &mut events).unwrap();
    assert!(events.is_empty() && began.elapsed() >= timeout);
}
