//! Drives a path by steps and knows what every byte of files and slots must be.
//!
//! A request takes effect in the model when it completes: an `Ok` read puts the reference's bytes
//! into the slot, an `Ok` write puts the slot's bytes into the reference, and a failed request does
//! nothing. The bytes that a read left in a slot's destination are proved by writing that slot, as
//! it is, to a file: a write begins in the destination.

use std::os::unix::fs::FileExt;

use gpuio_gpu::{Context, pattern};
use gpuio_io::clock::{Clock, Nanos};
use gpuio_io::engine::Op;
use gpuio_io::path::{
    Completion, Fault, Leg, Mismatch, OpenedPath, Path, PatternBlock, Request, Start,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{LEN, Rig, Setup, moves_pages, to_slot};

/// Where a write's bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The bytes in the slot since its last read or write.
    Slot,
    /// `generate` with the file's key and the write's offset: the rule holds on.
    Rule,
    /// `generate` with another key: a later check must find it.
    Other(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Which of the free slots.
    pub(crate) pick: usize,
    pub(crate) from: From,
    /// Whether a read is checked when it has completed.
    pub(crate) check: bool,
    /// Whether the path is looked at, without waiting, before the next step.
    pub(crate) poll: bool,
}

/// Any step; offsets and lengths are odd on buffered files.
pub(crate) fn step(direct: bool) -> impl Strategy<Value = Step> {
    let lens: &[u32] = if direct { &[4096, 8192, 65536] } else { &[1, 511, 4095, 4097, 65536 + 3] };
    let op = prop_oneof![Just(Op::Read), Just(Op::Write)];
    let from = prop_oneof![
        2 => Just(From::Slot),
        2 => Just(From::Rule),
        1 => any::<u64>().prop_map(From::Other)
    ];
    let what = (op, 0..2_u32, any::<u64>(), prop::sample::select(lens));
    let how = (any::<usize>(), from, prop::bool::weighted(0.3), any::<bool>());
    (what, how).prop_map(move |((op, file, place, len), (pick, from, check, poll))| {
        let unit = if direct { 4096 } else { 1 };
        let offset = place % ((LEN - u64::from(len)) / unit + 1) * unit;
        Step { op, file, offset, len, pick, from, check, poll }
    })
}

/// The same `count` steps each time.
pub(crate) fn steps(count: usize, direct: bool) -> Vec<Step> {
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(direct), count);
    steps.new_tree(&mut runner).unwrap().current()
}

/// A request in flight.
struct Out {
    step: Step,
    request: Request,
    /// The bytes that a read must find, or that a write takes along.
    bytes: Vec<u8>,
}

/// The counts of the requests so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) started: usize,
    pub(crate) reads: usize,
    pub(crate) writes: usize,
    pub(crate) failed: Vec<(Op, Fault)>,
    /// Starts that the path had no space for.
    pub(crate) full: usize,
}

pub(crate) struct Model<'a> {
    rig: &'a Rig,
    path: Box<dyn Path>,
    clock: Clock,
    /// The bytes in each slot's destination; nothing where they are open.
    holds: Vec<Option<Vec<u8>>>,
    out: Vec<Option<Out>>,
    moves_bytes: bool,
    times_gpu_leg: bool,
    /// The leg that a mismatch which came from the file is laid to.
    file_leg: Option<Leg>,
    /// Slots have no second copy of their bytes.
    moves_pages: bool,
    /// Each copy takes at least this long, ns.
    pub(crate) copy_ns: u64,
    /// A failed read may have left its bytes in the destination.
    pub(crate) failed_reads_are_open: bool,
    /// The first GPU fault lasts: what starts after it has completed must fail too.
    pub(crate) faults_last: bool,
    lost: Option<Nanos>,
    pub(crate) tally: Tally,
}

impl<'a> Model<'a> {
    pub(crate) fn new(setup: &Setup, rig: &'a Rig, context: &Context) -> Model<'a> {
        let OpenedPath { path, .. } = setup.open(rig, context).unwrap();
        let engine = setup.path.info.uses_engine() && setup.engine.info.asynchronous;
        let asynchronous = engine || setup.path.info.overlaps();
        assert_eq!(path.synchronous(), !asynchronous);
        let slots = 0..setup.depth;
        let mut model = Model {
            rig,
            path,
            clock: Clock::start(),
            holds: slots.clone().map(|_| None).collect(),
            out: slots.map(|_| None).collect(),
            moves_bytes: setup.engine.info.name != "null",
            times_gpu_leg: setup.path.info.times_gpu_leg(),
            file_leg: (setup.path.info.uses_engine() && !moves_pages(setup.path))
                .then_some(Leg::File),
            moves_pages: moves_pages(setup.path),
            copy_ns: 0,
            failed_reads_are_open: false,
            faults_last: false,
            lost: None,
            tally: Tally::default(),
        };
        for slot in 0..setup.depth {
            model.know(slot);
        }
        model
    }

    /// Writes the whole of a slot, unless it is known what it holds.
    fn know(&mut self, slot: u32) {
        if self.holds[slot as usize].is_none() {
            self.holds[slot as usize] = Some(vec![0; self.rig.largest() as usize]);
            self.generate(slot, u64::from(slot), 7, self.rig.largest());
        }
    }

    fn generate(&mut self, slot: u32, key: impl Into<pattern::Key>, offset: u64, len: u32) {
        let key = key.into();
        self.path.generate(PatternBlock::new(slot, key, offset, len)).unwrap();
        let holds = self.holds[slot as usize].as_mut().unwrap();
        pattern::fill(&mut holds[..len as usize], key, offset);
    }

    /// Whether the step overlaps one that is out: their order is nobody's promise.
    fn conflicts(&self, step: &Step) -> bool {
        let end = |step: &Step| step.offset + u64::from(step.len);
        self.out.iter().flatten().any(|out| {
            let other = &out.step;
            let apart = end(step) <= other.offset || end(other) <= step.offset;
            let reads = step.op == Op::Read && other.op == Op::Read;
            step.file == other.file && !apart && !reads
        })
    }

    /// A free slot, once the step may go.
    fn slot_for(&mut self, step: &Step) -> u32 {
        loop {
            let free: Vec<usize> =
                (0..self.out.len()).filter(|&slot| self.out[slot].is_none()).collect();
            if !free.is_empty() && !self.conflicts(step) {
                return u32::try_from(free[step.pick % free.len()]).unwrap();
            }
            self.advance(true);
        }
    }

    /// Starts a step, when a slot is free and it overlaps nothing that is out.
    pub(crate) fn start(&mut self, step: &Step) {
        let slot = self.slot_for(step);
        let len = step.len as usize;
        let mut bytes = vec![0; len];
        match step.op {
            Op::Read => {
                let reference = &self.rig.references[step.file as usize];
                reference.read_exact_at(&mut bytes, step.offset).unwrap();
            }
            Op::Write => {
                self.know(slot);
                match step.from {
                    From::Slot => {}
                    From::Rule => {
                        self.generate(slot, self.rig.key(step.file), step.offset, step.len);
                    }
                    From::Other(key) => self.generate(slot, key, step.offset, step.len),
                }
                let holds = self.holds[slot as usize].as_ref().unwrap();
                bytes.copy_from_slice(&holds[..len]);
            }
        }
        let mut request = to_slot(step.op, step.file, step.offset, step.len, slot, 0);
        loop {
            request.started = self.clock.now();
            request.due = request.started;
            let before = self.path.in_flight();
            if let Start::Taken = self.path.start(&self.clock, request) {
                assert_eq!(self.path.in_flight(), before + 1);
                break;
            }
            assert_eq!(self.path.in_flight(), before, "full, yet taken");
            self.tally.full += 1;
            self.advance(true);
        }
        self.tally.started += 1;
        let step = step.clone();
        self.out[slot as usize] = Some(Out { step, request, bytes });
        if self.out[slot as usize].as_ref().unwrap().step.poll {
            self.advance(false);
        }
    }

    /// Advances and looks at all that completed; gives how many did.
    pub(crate) fn advance(&mut self, wait: bool) -> usize {
        let mut completed = Vec::new();
        let before = self.path.in_flight();
        self.path.advance(&self.clock, &mut completed, wait).unwrap();
        assert_eq!(self.path.in_flight() + completed.len(), before);
        assert!(!wait || before == 0 || !completed.is_empty(), "did not wait");
        let count = completed.len();
        for one in completed {
            self.finish_request(&one);
        }
        count
    }

    fn finish_request(&mut self, completed: &Completion) {
        let slot = completed.request.slot;
        let out = self.out[slot as usize].take();
        let Out { step, request, bytes } = out.expect("a request completes once");
        let name = |r: &Request| (r.op, r.file, r.offset, r.len, r.started);
        assert_eq!(name(&completed.request), name(&request));
        self.times(completed);
        if let Err(fault) = completed.result {
            self.tally.failed.push((step.op, fault));
            if matches!(fault, Fault::Gpu(_)) {
                self.lost.get_or_insert(completed.ended);
            }
            if step.op == Op::Read && (self.failed_reads_are_open || self.moves_pages) {
                self.holds[slot as usize] = None;
            }
            return;
        }
        let lost = self.lost.filter(|_| self.faults_last);
        assert!(
            lost.is_none_or(|lost| request.started < lost),
            "worked on a lost device: {step:?}"
        );
        match step.op {
            Op::Read => {
                self.tally.reads += 1;
                if let Some(holds) = &mut self.holds[slot as usize] {
                    holds[..bytes.len()].copy_from_slice(&bytes);
                }
                if step.check {
                    self.check(slot, &step, &bytes);
                }
            }
            Op::Write => {
                self.tally.writes += 1;
                let reference = &self.rig.references[step.file as usize];
                reference.write_all_at(&bytes, step.offset).unwrap();
            }
        }
    }

    fn times(&self, completed: &Completion) {
        let whole = completed.ended.checked_sub(completed.request.started);
        assert_eq!(Some(completed.file_ns + completed.gpu_ns), whole, "{completed:?}");
        if !self.times_gpu_leg {
            assert_eq!(completed.gpu_ns, 0);
            return;
        }
        // A request that failed in its first leg never came to the second.
        match (completed.result, completed.request.op) {
            (Ok(()), _) => assert!(completed.gpu_ns >= self.copy_ns, "{completed:?}"),
            (Err(Fault::File(_)), Op::Read) if !self.moves_pages => {
                assert_eq!(completed.gpu_ns, 0, "{completed:?}");
            }
            (Err(Fault::Gpu(_)), Op::Write) => assert_eq!(completed.file_ns, 0, "{completed:?}"),
            (Err(_), _) => {}
        }
    }

    /// The path's check must say of the destination what the rule says of the reference's bytes.
    fn check(&mut self, slot: u32, step: &Step, bytes: &[u8]) {
        let key = self.rig.key(step.file);
        let found = self.path.check(PatternBlock::new(slot, key, step.offset, step.len)).unwrap();
        if !self.moves_bytes {
            return;
        }
        let expected = pattern::check(bytes, key, step.offset).map(|m| Mismatch {
            offset: m.first_offset,
            expected: m.expected,
            found: m.found,
            bad_words: m.bad_words,
            checksum_of: None,
            leg: self.file_leg,
            gpu: None,
        });
        assert_eq!(found, expected, "{step:?}");
    }

    /// Waits for all that is out.
    pub(crate) fn drain(&mut self) {
        while self.path.in_flight() > 0 {
            assert!(self.advance(true) > 0);
        }
        assert!(self.out.iter().all(Option::is_none), "a request was lost");
        let Tally { started, reads, writes, failed, .. } = &self.tally;
        assert_eq!(*started, reads + writes + failed.len());
    }

    /// Writes every slot out as it is, from its first to its last byte.
    pub(crate) fn write_slots(&mut self) {
        for slot in 0..self.out.len() {
            let step = Step {
                op: Op::Write,
                file: u32::from(slot % 2 == 1),
                offset: 64 << 10,
                len: self.rig.largest(),
                pick: slot,
                from: From::Slot,
                check: false,
                poll: false,
            };
            self.start(&step);
            self.drain();
            if self.moves_bytes {
                self.rig.compare();
            }
        }
    }

    /// Drops the path, then compares the files with their references.
    pub(crate) fn finish(self) -> Tally {
        drop(self.path);
        if self.moves_bytes {
            self.rig.compare();
        }
        self.tally
    }
}
