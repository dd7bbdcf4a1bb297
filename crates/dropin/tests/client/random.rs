//! Random sequences of calls on several threads, held against a model: every byte of memory and
//! file, and every answer. `GPUIO_TEST_CALLS` and `GPUIO_TEST_SEED` ask for more, and for others.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::batch::{destroy, fetch, set_up, submit};
use crate::client::{Cuda, Cufile, Entry, GOOD, alone, code, cuda, cufile, name, random_bytes};
use crate::stream::{Kept, stream, sync};

const THREADS: u64 = 4;
const CALLS: u64 = 2000;
/// Bytes of each thread's memory, and the most of its file.
const ROOM: usize = 512 << 10;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// A generator of numbers (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    /// A length that is small, large, or at an edge.
    fn len(&mut self) -> usize {
        match self.roll(4) {
            0 => self.roll(9000),
            1 => (self.roll(16) + 1) * 4096,
            2 => 65536 + self.roll(3) - 1,
            _ => self.roll(ROOM / 2),
        }
    }

    fn range(&mut self) -> (usize, usize) {
        let len = self.len();
        (self.roll(ROOM - len + 1), len)
    }
}

/// One thread's file and memory, and what they hold.
struct Program<'a> {
    cuda: &'a Cuda,
    cufile: &'a Cufile,
    dice: Dice,
    file: File,
    handle: usize,
    stream: usize,
    base: u64,
    registered: Option<usize>,
    stored: Vec<u8>,
    held: Vec<u8>,
}

impl Program<'_> {
    /// The base, offset and length to name a range of memory by; the answer if that is refused.
    fn name(&mut self, at: usize, len: usize) -> (u64, i64, Option<isize>) {
        let by_offset = self.dice.roll(2) == 0;
        let (base, skip) = if by_offset { (0, at) } else { (at, 0) };
        // Only a range that begins at the base of a registered buffer is held to its length.
        let beyond = base == 0 && self.registered.is_some_and(|most| skip + len > most);
        let base = self.base + base as u64;
        (base, i64::try_from(skip).unwrap(), beyond.then_some(-5017))
    }

    /// The effect of a transfer on the model; the answer.
    fn model(&mut self, is_write: bool, at: usize, len: usize, offset: usize) -> isize {
        if is_write {
            if len > 0 && self.stored.len() < offset + len {
                self.stored.resize(offset + len, 0);
            }
            self.stored[offset..][..len].copy_from_slice(&self.held[at..][..len]);
            return len.cast_signed();
        }
        let there = self.stored.len().saturating_sub(offset).min(len);
        if there > 0 {
            self.held[at..][..there].copy_from_slice(&self.stored[offset..][..there]);
        }
        there.cast_signed()
    }

    fn transfer(&mut self) -> String {
        let ((at, len), is_write) = (self.dice.range(), self.dice.roll(2) == 0);
        let offset = if is_write {
            self.dice.roll(ROOM - len + 1).min(self.stored.len())
        } else {
            self.dice.roll(ROOM)
        };
        let (base, skip, refused) = self.name(at, len);
        let file_offset = i64::try_from(offset).unwrap();
        let kind = self.dice.roll(4);
        let context = format!("{kind} write {is_write} {len} at {at}, file {offset}");
        let (cufile, handle) = (self.cufile, self.handle);
        let answer = match kind {
            0 | 1 if is_write => cufile.write(handle, base, len, file_offset, skip),
            0 | 1 => cufile.read(handle, base, len, file_offset, skip),
            2 => {
                let batch = set_up(cufile, 4).unwrap();
                let (buffer_offset, opcode) = (skip, i32::from(is_write));
                let mode = 1;
                let mut entries = [Entry {
                    mode,
                    base,
                    file_offset,
                    buffer_offset,
                    len,
                    handle,
                    opcode,
                    cookie: 7,
                }];
                assert_eq!(submit(cufile, batch, &mut entries), GOOD, "{context}");
                let events = fetch(cufile, batch, 1, 4, None);
                destroy(cufile, batch);
                assert_eq!((events.len(), events[0].cookie), (1, 7), "{context}");
                events[0].result
            }
            _ => {
                let mut kept = Kept::new(len, file_offset, skip);
                let call = if is_write { cufile.cuFileWriteAsync } else { cufile.cuFileReadAsync };
                let answer = kept.put(call, handle, base, self.stream);
                sync(self.cuda, self.stream);
                if answer == GOOD { kept.done() } else { -isize::try_from(answer.code).unwrap() }
            }
        };
        // A stream's parameters may change until it comes there: their range is looked at then.
        let wanted = match refused {
            Some(_) if kind == 3 => None,
            Some(code) => Some(code),
            None => Some(self.model(is_write, at, len, offset)),
        };
        match wanted {
            Some(wanted) => assert_eq!(answer, wanted, "{context}"),
            None if answer >= 0 => assert_eq!(answer, self.model(is_write, at, len, offset)),
            None => assert_eq!(answer, -5017, "{context}"),
        }
        context
    }

    /// One call of any kind.
    fn step(&mut self) -> String {
        match self.dice.roll(12) {
            0 => {
                let len = self.dice.roll(ROOM) + 1;
                // SAFETY: numbers only.
                let answer = unsafe { (self.cufile.cuFileBufRegister)(self.base, len, 0) };
                let wanted = if self.registered.is_some() { code(5023) } else { GOOD };
                assert_eq!(answer, wanted);
                self.registered = self.registered.or(Some(len));
                format!("register {len}")
            }
            1 => {
                // SAFETY: numbers only.
                let answer = unsafe { (self.cufile.cuFileBufDeregister)(self.base) };
                let wanted = if self.registered.take().is_some() { GOOD } else { code(5024) };
                assert_eq!(answer, wanted);
                "deregister".to_owned()
            }
            2 => {
                let old = self.handle;
                self.cufile.deregister(old);
                assert_eq!(self.cufile.read(old, self.base, 4096, 0, 0), -5027);
                self.handle = self.cufile.register(&self.file).unwrap();
                "another handle".to_owned()
            }
            3 => {
                // Garbage: nothing is touched.
                let (handle, base) = (self.handle, self.base);
                assert_eq!(self.cufile.read(self.dice.roll(1 << 30), base, 4096, 0, 0), -5027);
                assert_eq!(self.cufile.read(handle, 0, 4096, 0, 0), -5022);
                assert_eq!(self.cufile.read(handle, base, 4096, -1, 0), -5022);
                assert_eq!(self.cufile.write(handle, base, 4096, 0, -1), -5022);
                assert_eq!(self.cufile.write(handle, base, usize::MAX, 0, 0), -5022);
                "garbage".to_owned()
            }
            4 | 5 => {
                // The program's own copy, which may return before it has ended.
                let (at, len) = self.dice.range();
                let bytes = random_bytes(self.dice.0, len.max(1));
                self.cuda.put(self.base + at as u64, &bytes[..len]);
                self.held[at..][..len].copy_from_slice(&bytes[..len]);
                format!("copy {len} to {at}")
            }
            6 => {
                let (at, len) = self.dice.range();
                let value = self.dice.0.to_le_bytes()[5];
                // SAFETY: a range of the thread's memory.
                let set =
                    unsafe { (self.cuda.cuMemsetD8_v2)(self.base + at as u64, value, len.max(1)) };
                assert_eq!(set, 0);
                self.held[at.min(ROOM - 1)..][..len.max(1).min(ROOM - at)].fill(value);
                format!("set {len} at {at}")
            }
            _ => self.transfer(),
        }
    }

    fn run(mut self, seed: u64) {
        let mut before = Vec::new();
        for call in 0..variable("GPUIO_TEST_CALLS", CALLS) {
            before.push(self.step());
            if call % 16 == 0 {
                let same = self.cuda.get(self.base, ROOM) == self.held;
                assert!(same, "seed {seed}, call {call}: other bytes in memory, after {before:?}");
                let mut stored = vec![0; self.stored.len()];
                self.file.read_exact_at(&mut stored, 0).unwrap();
                assert!(stored == self.stored, "seed {seed}, call {call}: in the file, {before:?}");
                assert_eq!(self.file.metadata().unwrap().len(), self.stored.len() as u64);
                before.clear();
            }
        }
    }
}

#[test]
fn calls_in_any_order_do_what_the_model_does() {
    let variables = [("GPUIO_SOFT_LAG_US", "150")];
    alone(name(calls_in_any_order_do_what_the_model_does), &variables, || {
        let (cuda, cufile) = (&cuda(), &cufile());
        let directory = &tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let first = variable("GPUIO_TEST_SEED", 1);
            for seed in first..first + THREADS {
                scope.spawn(move || {
                    let own = crate::client::cuda();
                    let path = directory.path().join(seed.to_string());
                    let mut options = File::options();
                    let file = options.read(true).write(true).create_new(true).open(path).unwrap();
                    let handle = cufile.register(&file).unwrap();
                    let (base, held) = (own.room(ROOM), random_bytes(seed, ROOM));
                    own.put(base, &held);
                    let (stream, stored, registered) = (stream(cuda), Vec::new(), None);
                    let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                    let cuda = &own;
                    let program = Program {
                        cuda,
                        cufile,
                        dice,
                        file,
                        handle,
                        stream,
                        base,
                        registered,
                        stored,
                        held,
                    };
                    program.run(seed);
                });
            }
        });
    });
}
