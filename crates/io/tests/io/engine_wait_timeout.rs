//! Sleeping for a time in an engine: until something has come back, and no longer than requested.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::engine_support::{PAGE, Slots, config, make_file, on_any_file, open};
use gpuio_io::engine::{self, Io, Op, Push};

/// Long enough that a wait which takes it all is a test that hangs.
const AGES: Duration = Duration::from_secs(3600);

#[test]
fn a_wait_ends_when_an_io_has_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = make_file(&directory.path().join("file"), 64 * PAGE);
    for row in on_any_file().filter(|row| row.info.asynchronous) {
        let slots = Slots::new(4, PAGE);
        let config = config(&[&file], 64 * PAGE, 4, &slots, false);
        let Some((mut engine, _)) = open(row, &config, None) else { continue };
        for round in 0..50 {
            let io = slots.io(Op::Read, round % 4, u64::from(round) * PAGE as u64, 4096);
            assert!(matches!(engine.push(io), Push::Taken), "{}", row.info.name);
            let mut done = Vec::new();
            while done.is_empty() {
                engine.wait_timeout(AGES).unwrap();
                engine.reap(&mut done, 0).unwrap();
            }
            assert_eq!((done.len(), done[0].result), (1, Ok(4096)), "{}", row.info.name);
            // Nothing is out, so there is nothing to sleep for.
            engine.wait_timeout(AGES).unwrap();
        }
    }
}

#[test]
fn a_wait_ends_with_its_time() {
    let row = engine::find("io_uring").unwrap();
    // A read of an empty pipe does not end.
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let slots = Slots::new(1, PAGE);
    let file = make_file(&tempfile::tempdir().unwrap().path().join("file"), PAGE);
    let mut config = config(&[&file], PAGE, 1, &slots, false);
    config.files[0].fd = reader.as_raw_fd();
    let Some((mut engine, _)) = open(row, &config, None) else { return };
    let io = Io { offset: 0, ..slots.io(Op::Read, 0, 0, 8) };
    assert!(matches!(engine.push(io), Push::Taken));
    let mut done = Vec::new();
    engine.reap(&mut done, 0).unwrap();
    let began = Instant::now();
    engine.wait_timeout(Duration::from_millis(30)).unwrap();
    // A kernel before 5.11 can't wait for a time and returns at once; later ones sleep it out.
    engine.reap(&mut done, 0).unwrap();
    assert!(done.is_empty(), "{done:?}");
    let slept = began.elapsed();
    writer.write_all(&[7; 8]).unwrap();
    while done.is_empty() {
        engine.wait_timeout(AGES).unwrap();
        engine.reap(&mut done, 0).unwrap();
    }
    assert_eq!(done[0].result, Ok(8));
    let timed = rustix::system::uname().release().to_string_lossy().into_owned();
    if !timed.starts_with("5.") {
        assert!(slept >= Duration::from_millis(29), "{slept:?}");
    }
    drop(engine);
    drop(writer);
    assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
}
