//! Batches.

use std::fs::File;
use std::io::Write;

use crate::client::{
    Answer, Cufile, Entry, Event, GOOD, alone, code, cuda, cufile, name, random_bytes,
};

const COMPLETE: i32 = 0x10;
const FAILED: i32 = 0x40;

pub(crate) fn set_up(cufile: &Cufile, capacity: u32) -> Result<usize, Answer> {
    let mut batch = 0;
    // SAFETY: room for one handle.
    let answer = unsafe { (cufile.cuFileBatchIOSetUp)(&raw mut batch, capacity) };
    if answer == GOOD { Ok(batch) } else { Err(answer) }
}

pub(crate) fn submit(cufile: &Cufile, batch: usize, entries: &mut [Entry]) -> Answer {
    let count = u32::try_from(entries.len()).unwrap();
    // SAFETY: the entries and their memory are the test's.
    unsafe { (cufile.cuFileBatchIOSubmit)(batch, count, entries.as_mut_ptr(), 0) }
}

/// Events, with the timeout in nanoseconds or none.
pub(crate) fn fetch(
    cufile: &Cufile,
    batch: usize,
    least: u32,
    room: u32,
    timeout: Option<i64>,
) -> Vec<Event> {
    let mut events = vec![Event::default(); room as usize];
    let mut count = room;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: timeout.unwrap_or(0) };
    let time = if timeout.is_some() { &raw mut time } else { std::ptr::null_mut() };
    let call = cufile.cuFileBatchIOGetStatus;
    // SAFETY: room for `room` events.
    let answer = unsafe { call(batch, least, &raw mut count, events.as_mut_ptr(), time) };
    assert_eq!(answer, GOOD);
    events.truncate(count as usize);
    events
}

pub(crate) fn destroy(cufile: &Cufile, batch: usize) {
    // SAFETY: any number is one.
    unsafe { (cufile.cuFileBatchIODestroy)(batch) }
}

fn read(handle: usize, base: u64, len: usize, at: usize, cookie: u64) -> Entry {
    let file_offset = i64::try_from(at).unwrap();
    Entry { mode: 1, base, file_offset, buffer_offset: 0, len, handle, opcode: 0, cookie }
}

#[test]
fn each_entry_ends_once_and_batches_are_used_again() {
    alone(name(each_entry_ends_once_and_batches_are_used_again), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let bytes = random_bytes(1, 4 << 20);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let handle = cufile.register(file.as_file()).unwrap();
        // SAFETY: numbers only; the driver is open.
        assert_eq!(unsafe { (cufile.cuFileSetParameterSizeT)(9, 256) }, code(5026));
        assert_eq!(set_up(&cufile, 0), Err(code(5022)));
        assert_eq!(set_up(&cufile, 129), Err(code(5022)));
        let batch = set_up(&cufile, 128).unwrap();
        let device = cuda.room(128 * 8192);
        for round in 0..5_u64 {
            let place =
                |nth: usize| (nth * 24_571 + 1000 * usize::try_from(round).unwrap(), 8000 - nth);
            let mut entries: Vec<Entry> = (0..128)
                .map(|nth| {
                    let (at, len) = place(nth);
                    read(handle, device + 8192 * nth as u64, len, at, round << 32 | nth as u64)
                })
                .collect();
            assert_eq!(submit(&cufile, batch, &mut entries), GOOD);
            assert_eq!(submit(&cufile, batch, &mut entries[..1]), code(5037), "full");
            let mut seen = Vec::new();
            while seen.len() < 128 {
                // As NIXL does: asking for all after some were fetched.
                let events = fetch(&cufile, batch, 128, 128, (seen.is_empty()).then_some(1));
                seen.extend(events);
            }
            assert!(fetch(&cufile, batch, 128, 128, None).is_empty(), "nothing is outstanding");
            seen.sort_by_key(|event| event.cookie);
            for (nth, event) in seen.iter().enumerate() {
                let (at, len) = place(nth);
                assert_eq!((event.cookie, event.status), (round << 32 | nth as u64, COMPLETE));
                assert_eq!(event.result, len.cast_signed());
                let found = cuda.get(device + 8192 * nth as u64, len);
                assert!(found == bytes[at..at + len], "entry {nth} of round {round}");
            }
        }
        destroy(&cufile, batch);
        let mut one = [read(handle, device, 1, 0, 0)];
        assert_eq!(submit(&cufile, batch, &mut one), code(5022));
        destroy(&cufile, batch);
    });
}

#[test]
fn everything_may_be_mixed_and_what_fails_ends_too() {
    alone(name(everything_may_be_mixed_and_what_fails_ends_too), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let bytes = random_bytes(2, 1 << 20);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let handle = cufile.register(file.as_file()).unwrap();
        let read_only = cufile.register(&File::open(file.path()).unwrap()).unwrap();
        let batch = set_up(&cufile, 8).unwrap();
        let device = cuda.with(&[7; 4096]);
        let mut host = vec![0_u8; 4096];
        let plain = host.as_mut_ptr().expose_provenance() as u64;
        let write = Entry { opcode: 1, ..read(handle, device, 4096, 900_000, 2) };
        let mut entries = [
            read(handle, device + 4096 - 96, 96, 17, 1),
            write,
            read(read_only, plain, 4096, 333, 3),
            read(handle, plain, 4096, 1 << 20, 4),
            Entry { file_offset: -1, ..read(handle, plain, 1, 0, 5) },
            Entry { opcode: 1, ..read(read_only, plain, 8, 0, 6) },
            // Memory of the host that is not there.
            read(handle, 4096, 8, 0, 7),
        ];
        // The write and the first read share no byte.
        entries[1].len = 4000;
        assert_eq!(submit(&cufile, batch, &mut entries), GOOD);
        let mut events = fetch(&cufile, batch, 7, 8, None);
        events.sort_by_key(|event| event.cookie);
        let reported: Vec<_> = events.iter().map(|event| (event.status, event.result)).collect();
        let expected = [
            (COMPLETE, 96),
            (COMPLETE, 4000),
            (COMPLETE, 4096),
            (COMPLETE, 0),
            (FAILED, -5022),
            // The kernel's errno, where a blocking call has it in errno.
            (FAILED, -(libc::EBADF as isize)),
            (FAILED, -(libc::EFAULT as isize)),
        ];
        assert_eq!(reported, expected);
        assert!(cuda.get(device + 4000, 96) == bytes[17..113] && host == bytes[333..333 + 4096]);
        assert!(std::fs::read(file.path()).unwrap()[900_000..904_000] == [7; 4000]);
        let wrong = |change: fn(&mut Entry)| {
            let mut entries = [read(handle, plain, 1, 0, 1), read(handle, plain, 1, 0, 2)];
            change(&mut entries[1]);
            submit(&cufile, batch, &mut entries)
        };
        assert_eq!(wrong(|entry| entry.mode = 2), code(5022));
        assert_eq!(wrong(|entry| entry.opcode = 9), code(5022));
        assert_eq!(wrong(|entry| entry.handle = 4711), code(5027));
        assert!(fetch(&cufile, batch, 0, 8, None).is_empty(), "none of them was begun");
        destroy(&cufile, batch);
    });
}

#[test]
fn batches_are_cancelled_and_destroyed_with_work_in_them() {
    let slow = [("GPUIO_SOFT_DELAY_US", "2000")];
    alone(name(batches_are_cancelled_and_destroyed_with_work_in_them), &slow, || {
        let (cuda, cufile) = (cuda(), cufile());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&random_bytes(3, 8 << 20)).unwrap();
        let handle = cufile.register(file.as_file()).unwrap();
        let device = cuda.room(64 << 16);
        let batch = set_up(&cufile, 64).unwrap();
        let mut entries: Vec<Entry> =
            (0..64).map(|nth| read(handle, device + (nth << 16), 65536, 4096, nth)).collect();
        assert_eq!(submit(&cufile, batch, &mut entries), GOOD);
        // SAFETY: a batch.
        assert_eq!(unsafe { (cufile.cuFileBatchIOCancel)(batch) }, GOOD);
        let mut events = Vec::new();
        while events.len() < 64 {
            events.extend(fetch(&cufile, batch, 64, 64, None));
        }
        let good = |event: &&Event| event.status == COMPLETE && event.result == 65536;
        let gone = |event: &&Event| event.status == 8 && event.result < 0;
        let counts = (events.iter().filter(good).count(), events.iter().filter(gone).count());
        assert_eq!(counts.0 + counts.1, 64, "{events:?}");
        assert_eq!(submit(&cufile, batch, &mut entries), GOOD);
        destroy(&cufile, batch);
        // Nothing of it is under way: the memory may go, and so may the handle.
        // SAFETY: from cuMemAlloc, and not used any more.
        assert_eq!(unsafe { (cuda.cuMemFree_v2)(device) }, 0);
        cufile.deregister(handle);
        // SAFETY: none any more.
        assert_eq!(unsafe { (cufile.cuFileBatchIOCancel)(batch) }, code(5022));
    });
}

#[test]
fn closing_a_handle_waits_for_its_entries() {
    let slow = [("GPUIO_SOFT_DELAY_US", "3000")];
    alone(name(closing_a_handle_waits_for_its_entries), &slow, || {
        let (cuda, cufile) = (cuda(), cufile());
        let bytes = random_bytes(4, 1 << 20);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let handle = cufile.register(file.as_file()).unwrap();
        let device = cuda.room(1 << 20);
        let batch = set_up(&cufile, 16).unwrap();
        let mut entries: Vec<Entry> = (0..16)
            .map(|nth| {
                read(handle, device + (nth << 16), 65536, usize::try_from(nth).unwrap() << 16, nth)
            })
            .collect();
        assert_eq!(submit(&cufile, batch, &mut entries), GOOD);
        let fetched = std::thread::scope(|scope| {
            let fetched = scope.spawn(|| fetch(&cufile, batch, 16, 16, None));
            cufile.deregister(handle);
            assert!(cuda.get(device, 1 << 20) == bytes, "all is there");
            fetched.join().unwrap()
        });
        assert_eq!(fetched.len(), 16);
    });
}

#[test]
fn a_handle_may_be_closed_before_its_events_are_fetched() {
    alone(name(a_handle_may_be_closed_before_its_events_are_fetched), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let bytes = random_bytes(5, 1 << 20);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let device = cuda.room(1 << 20);
        let batch = set_up(&cufile, 16).unwrap();
        for _ in 0..50 {
            let handle = cufile.register(file.as_file()).unwrap();
            let mut entries: Vec<Entry> = (0..16_u64)
                .map(|nth| {
                    let at = usize::try_from(nth << 16).unwrap();
                    read(handle, device + (nth << 16), 65536, at, nth)
                })
                .collect();
            assert_eq!(submit(&cufile, batch, &mut entries), GOOD);
            cufile.deregister(handle);
            assert_eq!(submit(&cufile, batch, &mut entries[..1]), code(5027));
            let mut events = fetch(&cufile, batch, 10, 10, None);
            events.extend(fetch(&cufile, batch, 16, 16, None));
            events.sort_by_key(|event| event.cookie);
            let good = |(nth, event): (u64, &Event)| event.cookie == nth && event.result == 65536;
            assert!(events.len() == 16 && (0..).zip(&events).all(good), "{events:?}");
        }
        assert!(cuda.get(device, 1 << 20) == bytes);
    });
}

#[test]
fn more_entries_than_any_pool_has_room_for() {
    // NVIDIA's library waits for ever with fewer buffers in its pool than entries (reported of
    // 1.15 by ai-dynamo/nixl#2070).
    let small = [("GPUIO_CUFILE_RING_MB", "1"), ("GPUIO_CUFILE_WORKERS", "2")];
    alone(name(more_entries_than_any_pool_has_room_for), &small, || {
        let (cuda, cufile) = (cuda(), cufile());
        // SAFETY: numbers only.
        assert_eq!(unsafe { (cufile.cuFileSetParameterSizeT)(9, 256) }, GOOD);
        let one = [4_usize, 1];
        let (size, count) = (&raw const one[0], &raw const one[1]);
        // SAFETY: one number each.
        assert_eq!(unsafe { (cufile.cuFileSetParameterPosixPoolSlabArray)(size, count, 1) }, GOOD);
        let bytes = random_bytes(6, 8 << 20);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let handle = cufile.register(file.as_file()).unwrap();
        let len = 1 << 18;
        let device = cuda.room(256 * len);
        let batches = [set_up(&cufile, 256).unwrap(), set_up(&cufile, 256).unwrap()];
        let at = |nth: u64| usize::try_from(nth * 29_989).unwrap();
        for batch in batches {
            let mut entries: Vec<Entry> = (0..256)
                .map(|nth| read(handle, device + nth * len as u64, len, at(nth), nth))
                .collect();
            assert_eq!(submit(&cufile, batch, &mut entries), GOOD, "both at once");
        }
        for batch in batches {
            let mut seen = Vec::new();
            while seen.len() < 256 {
                seen.extend(fetch(&cufile, batch, 256, 256, None));
            }
            assert!(seen.iter().all(|event| event.status == COMPLETE), "{seen:?}");
        }
        for nth in 0..256 {
            let want = len.min(bytes.len() - at(nth));
            let found = cuda.get(device + nth * len as u64, want);
            assert!(found == bytes[at(nth)..at(nth) + want], "entry {nth}");
        }
    });
}
