//! Every engine against plain pread(2) and pwrite(2) on a reference of its file.
#![allow(unsafe_code)]

use crate::engine_support::{
    PAGE, Slots, config, drain, make_file, on_any_file, open, open_direct, push,
};
use gpuio_io::engine::{Done, ENGINES, Engine, EngineEntry, IoFault, Op};
use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, TestRunner};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// The file at the start, and the most that it may grow to, bytes.
const LEN: usize = 48 * PAGE;
const MOST: usize = 64 * PAGE;
const LARGEST: usize = 4 * PAGE;

#[derive(Debug, Clone)]
struct Step {
    op: Op,
    offset: u64,
    len: u32,
    fill: u8,
}

fn step(unit: usize) -> impl Strategy<Value = Step> {
    let (places, most) = (MOST - LARGEST, LARGEST / unit);
    let op = prop_oneof![Just(Op::Read), Just(Op::Write)];
    (op, 0..=places / unit, 1..=most, any::<u8>()).prop_map(move |(op, place, count, fill)| {
        let (offset, len) = ((place * unit) as u64, u32::try_from(count * unit).unwrap());
        Step { op, offset, len, fill }
    })
}

/// The result that the reference gives for an I/O.
struct Expected {
    step: Step,
    /// It ended past the file's end when it was started, and may have moved that.
    met_end: bool,
    result: Result<u32, IoFault>,
    bytes: Vec<u8>,
}

struct Model {
    reference: File,
    slots: Slots,
    out: Vec<Option<Expected>>,
    moves_bytes: bool,
}

impl Model {
    fn end(step: &Step) -> u64 {
        step.offset + u64::from(step.len)
    }

    /// Whether the step has to wait for what is out: the order of overlapping I/Os, and of
    /// those that meet the end of the file, is nobody's promise.
    fn conflicts(&self, step: &Step) -> bool {
        let meets_end = self.meets_end(step);
        self.out.iter().flatten().any(|expected| {
            let other = &expected.step;
            let apart = Self::end(step) <= other.offset || Self::end(other) <= step.offset;
            meets_end || expected.met_end || !apart
        })
    }

    fn meets_end(&self, step: &Step) -> bool {
        Self::end(step) > self.reference.metadata().unwrap().len()
    }

    fn start(&mut self, step: &Step, slot: u32) -> Expected {
        let met_end = self.meets_end(step);
        let memory = &mut self.slots.bytes(slot)[..step.len as usize];
        let mut bytes = vec![0; step.len as usize];
        let result = match step.op {
            Op::Read => {
                memory.fill(0xee);
                let mut actual = 0;
                while actual < bytes.len() {
                    match self
                        .reference
                        .read_at(&mut bytes[actual..], step.offset + actual as u64)
                        .unwrap()
                    {
                        0 => break,
                        more => actual += more,
                    }
                }
                let moved = u32::try_from(actual).unwrap();
                if moved == step.len { Ok(moved) } else { Err(IoFault::EndOfFile(moved)) }
            }
            Op::Write => {
                memory.fill(step.fill);
                memory[0] = !step.fill;
                self.reference.write_all_at(memory, step.offset).unwrap();
                Ok(step.len)
            }
        };
        Expected { step: step.clone(), met_end, result, bytes }
    }

    fn check(&mut self, done: &mut Vec<Done>) {
        for done in done.drain(..) {
            let slot = done.io.token;
            let expected = self.out[slot as usize].take().expect("a token comes back once");
            let (step, len) = (&expected.step, done.io.span.len());
            assert_eq!((done.io.op, done.io.offset, len), (step.op, step.offset, step.len));
            if !self.moves_bytes {
                assert_eq!(done.result, Ok(len));
                continue;
            }
            assert_eq!(done.result, expected.result, "{step:?}");
            let moved = match expected.result {
                Ok(moved) | Err(IoFault::EndOfFile(moved)) => moved as usize,
                Err(IoFault::Errno(_)) => 0,
            };
            if step.op == Op::Read {
                let memory = &self.slots.bytes(slot)[..moved];
                assert!(memory == &expected.bytes[..moved], "other bytes: {step:?}");
            }
        }
    }

    fn run(&mut self, engine: &mut dyn Engine, steps: &[Step]) {
        let mut done = Vec::new();
        for step in steps {
            let slot = loop {
                let free = self.out.iter().position(Option::is_none);
                match free {
                    Some(slot) if !self.conflicts(step) => break u32::try_from(slot).unwrap(),
                    _ => engine.reap(&mut done, 1).unwrap(),
                }
                self.check(&mut done);
            };
            let expected = self.start(step, slot);
            self.out[slot as usize] = Some(expected);
            let io = self.slots.io(step.op, slot, step.offset, step.len);
            push(engine, io, &mut done);
            self.check(&mut done);
        }
        drain(engine, &mut done);
        self.check(&mut done);
        assert!(self.out.iter().all(Option::is_none), "an I/O was lost");
    }
}

fn same_as_reference(row: &EngineEntry, direct: bool, depth: u32, steps: &[Step]) {
    let directory = tempfile::tempdir().unwrap();
    let (path, reference) = (directory.path().join("file"), directory.path().join("reference"));
    let mut file = make_file(&path, LEN);
    let reference = make_file(&reference, LEN);
    if direct {
        match open_direct(&path) {
            Some(opened) => file = opened,
            None => return,
        }
    }
    let slots = Slots::new(depth, LARGEST);
    let config = config(&[&file], MOST, depth, &slots, direct);
    let Some((mut engine, counters)) = open(row, &config, None) else {
        return;
    };
    let out = (0..depth).map(|_| None).collect();
    let mut model = Model { reference, slots, out, moves_bytes: row.info.name != "null" };
    model.run(engine.as_mut(), steps);
    drop(engine);

    let count = |op: Op| {
        let counters = counters.of(op);
        let ios = counters.ios.load(Ordering::Relaxed);
        ios + counters.faults.load(Ordering::Relaxed)
    };
    let pushed = |op: Op| steps.iter().filter(|step| step.op == op).count() as u64;
    assert_eq!((count(Op::Read), count(Op::Write)), (pushed(Op::Read), pushed(Op::Write)));
    if model.moves_bytes {
        // Through a new descriptor: what is in the file, not what an engine's has in mind.
        let file = std::fs::read(&path).unwrap();
        let reference = std::fs::read(directory.path().join("reference")).unwrap();
        assert!(file == reference, "the files differ");
    }
}

fn reference(name: &str, direct: bool) {
    let row = ENGINES.iter().find(|row| row.info.name == name).expect("an engine of the table");
    let unit = if direct { PAGE } else { 1 };
    for depth in [1, 7, 32] {
        let runs = Runs { cases: 16, failure_persistence: None, ..Runs::default() };
        let steps = proptest::collection::vec(step(unit), 1..120);
        let outcome = TestRunner::new(runs).run(&steps, |steps| {
            same_as_reference(row, direct, depth, &steps);
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{name}, direct {direct}, depth {depth}: {failure}");
        }
    }
}

#[test]
fn every_engine_of_the_table_has_a_reference_test() {
    let names: Vec<&str> = on_any_file().map(|row| row.info.name).collect();
    assert_eq!(names, ["psync", "io_uring", "io_uring-sqpoll", "libaio", "mmap", "null", "pool"]);
}

macro_rules! references {
    ($($test:ident: $name:literal, $direct:literal;)*) => {
        $(#[test] fn $test() { reference($name, $direct); })*
    };
}

references! {
    psync_buffered: "psync", false;
    psync_direct: "psync", true;
    io_uring_buffered: "io_uring", false;
    io_uring_direct: "io_uring", true;
    io_uring_sqpoll_buffered: "io_uring-sqpoll", false;
    io_uring_sqpoll_direct: "io_uring-sqpoll", true;
    libaio_buffered: "libaio", false;
    libaio_direct: "libaio", true;
    mmap_buffered: "mmap", false;
    mmap_direct: "mmap", true;
    null_buffered: "null", false;
    null_direct: "null", true;
    pool_buffered: "pool", false;
    pool_direct: "pool", true;
}
