use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use gpuio_gpu::Which;

use super::*;
use crate::Transfer;
use crate::settings::{Settings, UncachedReads};

fn call(offset: u64, len: u64, piece_len: u64) -> Call {
    let file = tempfile::tempfile().unwrap();
    let file = File::new(file.as_fd(), UncachedReads::Direct).unwrap();
    let location = MemoryLocation::host();
    Call::new(
        CallRequest { op: Op::Read, file, location, address: 0, len, offset },
        Executors::CallerAndWorkers,
        piece_len,
    )
}

#[test]
fn pieces_cover_the_call_and_end_at_multiples_of_their_length() {
    for (offset, len) in [(0, 1), (0, 64), (1, 64), (63, 2), (64, 640), (100, 1000), (7, 57)] {
        let call = call(offset, len, 64);
        let (mut counted, mut next) = (0, 0);
        while let Some(piece) = call.take(&mut counted) {
            assert_eq!(piece.start, next);
            assert!(piece.len > 0 && piece.len <= 64);
            next += piece.len as u64;
            assert!(next == len || (offset + next).is_multiple_of(64));
        }
        assert_eq!((next, counted), (len, call.pieces()), "{len} bytes at {offset}");
    }
}

#[test]
fn the_first_failure_by_offset_is_the_result_unless_the_file_ended_before() {
    let fault =
        |offset| Fault::File { call: "pread", errno: 5, offset, len: 1, path: "file".into() };
    let request = call(0, 640, 64);
    request.fail(300, fault(300));
    request.fail(128, fault(128));
    request.fail(200, fault(200));
    let mut counted = 0;
    while let Some(piece) = request.take(&mut counted) {
        assert!(piece.start < 128, "pieces deferred the failure are passed over");
    }
    request.finish(counted, &RouteBytes::default());
    request.wait();
    assert_eq!(request.outcome(), Err(fault(128)));

    let request = call(0, 640, 64);
    request.fail(300, fault(300));
    request.ends(250);
    request.give_up(&Fault::Cancelled);
    assert_eq!(request.outcome(), Err(Fault::Cancelled), "pieces before the end failed");

    let request = call(0, 640, 64);
    request.ends(100);
    request.fail(128, fault(128));
    assert_eq!(request.outcome().map(|moved| moved.bytes), Ok(100));
}

#[test]
fn a_panic_in_the_only_thread_of_a_call_ends_the_call() {
    const LEN: usize = 1 << 20;
    let driver = Which::Software;
    let alone =
        Settings { driver, max_workers: 0, max_piece_bytes: 64 << 10, ..Settings::default() };
    let (ends, end) = channel();
    std::thread::spawn(move || {
        let transfer = Transfer::new(alone);
        let content = tempfile::tempfile().unwrap();
        content.set_len(LEN as u64).unwrap();
        let file = transfer.file(content.as_fd()).unwrap();
        let mut host = vec![1_u8; LEN];
        let at = host.as_mut_ptr().expose_provenance() as u64;
        let location = transfer.locate(at).unwrap();
        for panics in [true, false] {
            file.0.panics.store(panics, Ordering::Release);
            // SAFETY: memory of this thread's own.
            ends.send(unsafe { transfer.call(Op::Read, &file, location, at, LEN, 0) }).unwrap();
        }
    });
    let next = || end.recv_timeout(Duration::from_secs(60)).expect("the call ends");
    assert_eq!(next(), Err(Fault::Panicked));
    assert_eq!(next().map(|moved| moved.bytes), Ok(LEN));
}
