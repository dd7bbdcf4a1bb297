use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

use gpuio_gpu::{DevPtr, DeviceBuf, MemoryKind, RawStream, Stream, UserStream, Which};

use super::latency::StreamKey;
use super::op::StreamOp;
use super::pending::PendingOps;
use super::*;
use crate::Op;
use crate::api::Transfer;
use crate::file::File;

pub(super) type Completion = Receiver<(ResolvedParams, Result<Transferred, Fault>)>;

/// A program with a stream and a file of its own, and no thread of ours.
pub(super) struct Program {
    transfer: Transfer,
    stream_device: &'static StreamDevice,
    stream: Stream,
    file: File,
    content: Vec<u8>,
    _dir: tempfile::TempDir,
}

impl Program {
    pub(super) fn new(len: usize) -> Self {
        let (driver, max_piece_bytes) = (Which::Software, 64 << 10);
        let settings = Settings { driver, max_piece_bytes, max_active: 3, ..Settings::default() };
        let transfer = Transfer::new(settings);
        let state = transfer.state();
        let stream_device = transfer.streams().device(&state.devices, 0).unwrap();
        let stream = Stream::new(stream_device.device.context()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..len as u64).map(|at| (at * at / 7).to_le_bytes()[0]).collect();
        let path = dir.path().join("file");
        std::fs::write(&path, &content).unwrap();
        let file = transfer.file(std::fs::File::open(&path).unwrap().as_fd()).unwrap();
        Self { transfer, stream_device, stream, file, content, _dir: dir }
    }

    pub(super) fn user(&self) -> UserStream {
        let raw = RawStream::new(self.stream.as_raw());
        // SAFETY: the stream lives as long as `self`.
        unsafe { UserStream::new(self.stream_device.device.context().driver(), raw) }.unwrap()
    }

    /// A read of the whole file that is in no stream.
    pub(super) fn stream_op(
        &self,
        user: &UserStream,
        (method, base): (Method, u64),
    ) -> (Arc<StreamOp>, Completion) {
        let (report, completion) = channel();
        let on_completion = move |read, outcome| {
            let _ = report.send((read, outcome));
        };
        let kept = (self.transfer.state(), self.stream_device);
        let served = (self.transfer.streams().workers(&method), StreamKey::of(user));
        let request = (Op::Read, self.file.clone());
        let params = self.params();
        (
            StreamOp::new(kept, served, request, (method, base), params, Box::new(on_completion))
                .unwrap(),
            completion,
        )
    }

    fn params(&self) -> Params {
        let size = self.content.len();
        let (file_offset, buffer_offset) = (Param::Immediate(0), Param::Immediate(0));
        Params { max_size: size, size: Param::Immediate(size), file_offset, buffer_offset }
    }
}

#[test]
fn of_each_stream_the_oldest_is_polled() {
    let program = Program::new(100_000);
    let context = program.stream_device.device.context();
    let other = Stream::new(context).unwrap();
    let raw = RawStream::new(other.as_raw());
    // SAFETY: the stream lives to the end of the test.
    let other_user = unsafe { UserStream::new(context.driver(), raw) };
    let (user, other) = (program.user(), other_user.unwrap());
    let pending = PendingOps::default();
    let make = |user| program.stream_op(user, (Method::Host, 0)).0;
    let stream_ops = [make(&user), make(&user), make(&other)];
    assert!(stream_ops.iter().all(|stream_op| pending.add(stream_op)));
    let reach = |at: usize| {
        let buffer = stream_ops[at].buffer;
        buffer.reached().store(buffer.value(1), Ordering::Release);
    };
    let found =
        || pending.poll().map(|found| stream_ops.iter().position(|one| Arc::ptr_eq(one, &found)));
    assert!(found().is_none());
    reach(1);
    assert!(found().is_none(), "a stream reaches the first one first");
    reach(2);
    assert_eq!(found(), Some(Some(2)));
    reach(0);
    assert_eq!((found(), found(), found()), (Some(Some(0)), Some(Some(1)), None));
    // A transfer that a host call announced is no longer kept, whichever came first.
    let late = [make(&user), make(&user)];
    assert!(late[0].reach(1));
    assert!(pending.add(&late[0]) && pending.add(&late[1]));
    assert!(late[1].reach(1) && !late[1].reach(1));
    pending.remove(&late[1]);
    assert!(late.iter().all(|stream_op| Arc::strong_count(stream_op) == 1));
}

#[test]
fn after_a_transfer_whose_stream_is_gone_others_are_polled() {
    let program = Program::new(100_000);
    let (user, pending) = (program.user(), PendingOps::default());
    let make = || program.stream_op(&user, (Method::Host, 0)).0;
    let (gone, next) = (make(), make());
    assert!(pending.add(&gone) && pending.add(&next));
    next.buffer.reached().store(next.buffer.value(1), Ordering::Release);
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert!(pending.poll().is_some_and(|found| Arc::ptr_eq(&found, &next)));
    assert!(pending.poll().is_none() && !gone.is_reached());
}

#[test]
fn several_threads_move_each_piece_once() {
    let program = Program::new(5 << 20);
    let mut memory = vec![0_u8; 5 << 20];
    let base = memory.as_mut_ptr().expose_provenance() as u64;
    let (stream_op, completion) = program.stream_op(&program.user(), (Method::Host, base));
    assert_eq!(stream_op.open(), None, "the stream has not reached it");
    assert!(stream_op.reach(1));
    // 80 of 64 KiB.
    assert_eq!((stream_op.open(), stream_op.open(), stream_op.untaken()), (Some(80), None, 80));
    std::thread::scope(|scope| {
        (0..4).for_each(|_| {
            scope.spawn(|| stream_op.work());
        });
    });
    let moved = completion.try_recv().unwrap().1.unwrap();
    assert_eq!((moved.bytes, moved.route.by_host), (5 << 20, 5 << 20));
    assert!(
        completion.try_recv().is_err() && stream_op.untaken() == 0 && stream_op.open().is_none()
    );
    assert!(memory == program.content);
    // It ran in full: there is nothing to wait for.
    stream_op.abandon();
}

#[test]
fn an_abandoned_transfer_touches_nothing() {
    let program = Program::new(200_000);
    let mut memory = vec![1_u8; 200_000];
    let base = memory.as_mut_ptr().expose_provenance() as u64;
    // The stream stores its semaphore after the host call was refused.
    let (stream_op, completion) = program.stream_op(&program.user(), (Method::Host, base));
    stream_op.note_enqueued();
    stream_op.abandon();
    stream_op.buffer.reached().store(stream_op.buffer.value(1), Ordering::Release);
    assert!(stream_op.workers().pending.add(&stream_op));
    assert!(stream_op.workers().pending.poll().is_some_and(|stream_op| stream_op.open().is_none()));
    assert_eq!(stream_op.buffer.completed().load(Ordering::Acquire), stream_op.buffer.value(1));
    // It stores the semaphore before that, and the chunk is open.
    let (stream_op, late) = program.stream_op(&program.user(), (Method::Host, base));
    stream_op.note_enqueued();
    assert!(stream_op.reach(1) && stream_op.open().is_some());
    stream_op.abandon();
    assert!(!stream_op.work());
    for completion in [completion, late] {
        assert!(completion.try_recv().is_err(), "no completion for what did not happen");
    }
    assert!(memory.iter().all(|&byte| byte == 1));
}

#[test]
fn semaphore_values_wrap_around() {
    let program = Program::new(1 << 20);
    let context = program.stream_device.device.context();
    // Eight chunks each, in the buffer that was returned last: each semaphore passes 0.
    for before in [u32::MAX - 1, u32::MAX, 0] {
        let buffer = program.stream_device.buffers.take(context, Some(1 << 20)).unwrap();
        program.stream_device.buffers.give_back(buffer.starting_at(before.wrapping_sub(2)), 0);
        let memory = DeviceBuf::alloc(context, MemoryKind::Device, 1 << 20).unwrap();
        context.make_current().unwrap();
        let at = memory.ptr().0;
        for _ in 0..3 {
            let (report, completion) = channel();
            let on_completion: OnCompletion = Box::new(move |_, outcome| {
                let _ = report.send(outcome);
            });
            let location = program.transfer.locate(at).unwrap();
            let (raw, params) = (program.user().raw(), program.params());
            // SAFETY: memory of the test's, which lives until the stream was passed.
            let put = unsafe {
                program.transfer.enqueue(
                    raw,
                    (Op::Read, &program.file),
                    (location, at),
                    params,
                    on_completion,
                )
            };
            put.unwrap();
            program.stream.sync().unwrap();
            assert_eq!(completion.try_recv().unwrap().unwrap().bytes, 1 << 20);
            let mut seen = vec![0_u8; 1 << 20];
            let to = DevPtr(seen.as_mut_ptr().expose_provenance() as u64);
            // SAFETY: ranges of the test's own; the wait follows.
            unsafe { program.stream.copy(to, memory.ptr(), 1 << 20) }.unwrap();
            program.stream.sync().unwrap();
            assert!(seen == program.content);
        }
    }
    let (stream_op, _) = program.stream_op(&program.user(), (Method::Host, 0));
    for before in [0, 5, u32::MAX - 1, u32::MAX] {
        let buffer = stream_op.buffer.starting_at(before);
        assert_eq!(buffer.chunks_reached(), 0);
        for chunks in [1, 2, 3] {
            buffer.reached().store(buffer.value(chunks), Ordering::Release);
            assert_eq!(buffer.chunks_reached(), chunks, "from {before} on");
        }
        // The value of the previous transfer.
        buffer.reached().store(before.wrapping_sub(1), Ordering::Release);
        assert_eq!(buffer.chunks_reached(), 0);
    }
}

#[test]
fn a_panic_is_a_fault_of_its_call_and_the_next_ones_work() {
    const LEN: usize = 1 << 20;
    let program = Program::new(LEN);
    let (transfer, file) = (&program.transfer, &program.file);
    program.stream_device.device.context().make_current().unwrap();
    let memory =
        DeviceBuf::alloc(program.stream_device.device.context(), MemoryKind::Device, LEN).unwrap();
    let (at, mut host) = (memory.ptr().0, vec![0_u8; LEN]);
    let host_at = host.as_mut_ptr().expose_provenance() as u64;
    let panicking = || file.0.panics.store(true, Ordering::Release);
    for address in [at, host_at] {
        let location = transfer.locate(address).unwrap();
        // SAFETY: memory of the test's own, here and below.
        let read = || unsafe { transfer.call(Op::Read, file, location, address, LEN, 0) };
        panicking();
        assert_eq!(read(), Err(Fault::Panicked));
        assert_eq!(read().unwrap().bytes, LEN);
    }
    assert!(host == program.content);
    let location = transfer.locate(at).unwrap();
    let batch = transfer.batch(64);
    let outcomes = |cookies: std::ops::Range<u64>| {
        let entry = |cookie| crate::Entry {
            op: Op::Read,
            file: file.clone(),
            location,
            address: at + cookie * 4096,
            len: 4096,
            offset: cookie * 4096,
            cookie,
        };
        let count = u32::try_from(cookies.clone().count()).unwrap();
        // SAFETY: as above.
        unsafe { batch.submit(cookies.map(entry).collect()) }.unwrap();
        let mut ends = Vec::new();
        while ends.len() < count as usize {
            ends.extend(batch.events(1, count, None).into_iter().map(|event| event.outcome));
        }
        ends
    };
    panicking();
    assert!(outcomes(0..40).contains(&Err(Fault::Panicked)));
    assert!(outcomes(40..64).iter().all(Result::is_ok));
    for panics in [true, false] {
        file.0.panics.store(panics, Ordering::Release);
        let (report, completion) = channel();
        let on_completion: OnCompletion = Box::new(move |_, outcome| {
            let _ = report.send(outcome);
        });
        let (raw, params) = (program.user().raw(), program.params());
        // SAFETY: memory of the test's, which lives until the stream was passed.
        let put = unsafe {
            transfer.enqueue(raw, (Op::Read, file), (location, at), params, on_completion)
        };
        put.unwrap();
        program.stream.sync().unwrap();
        let outcome = completion.try_recv().unwrap();
        assert_eq!(outcome.map(|moved| moved.bytes).ok(), (!panics).then_some(LEN));
    }
}
