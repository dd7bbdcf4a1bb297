//! I/Os a second of one engine on one file, one thread, 4 KiB random reads of a warm file; or,
//! with the null engine, the cost of the stack of decorators.
//!
//! `engine_speed ENGINE FILE DEPTH SECONDS [stack|bare] [direct]`. Reads the clock twice for each
//! I/O, as a load does.
#![allow(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output is its result")]

use gpuio_io::buf::Aligned;
use gpuio_io::clock::Clock;
use gpuio_io::engine::{
    Done, Engine, EngineConfig, EngineFile, Io, LegCounters, Op, Push, build, find,
};
use std::error::Error;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

const BLOCK: u32 = 4096;

struct Load {
    memory: Aligned,
    blocks: u64,
    random: u64,
    started: Vec<u64>,
    latency: u64,
    clock: Clock,
}

impl Load {
    fn io(&mut self, slot: u32) -> Io {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let offset = self.random % self.blocks * u64::from(BLOCK);
        let at = slot as usize * BLOCK as usize;
        // SAFETY: the engine is dropped before the memory.
        let span = unsafe { self.memory.span(at, BLOCK) }.expect("the slot is inside");
        self.started[slot as usize] = self.clock.now();
        Io { op: Op::Read, file: 0, offset, span, token: slot }
    }

    fn completed(&mut self, done: &Done) -> u32 {
        assert_eq!(done.result, Ok(BLOCK));
        let slot = done.io.token;
        self.latency += self.clock.now() - self.started[slot as usize];
        slot
    }
}

fn run(
    load: &mut Load,
    engine: &mut dyn Engine,
    depth: u32,
    until: u64,
) -> Result<u64, Box<dyn Error>> {
    let mut free: Vec<u32> = (0..depth).collect();
    let (mut done, mut count) = (Vec::with_capacity(depth as usize), 0);
    while load.clock.now() < until || engine.in_flight() > 0 {
        let stop = load.clock.now() >= until;
        while let Some(slot) = free.pop().filter(|_| !stop) {
            match engine.push(load.io(slot)) {
                Push::Taken => {}
                Push::Full(_) => return Err("there is a slot for each I/O".into()),
                Push::Done(back) => {
                    count += 1;
                    free.push(load.completed(&back));
                    if count % 64 == 0 {
                        break;
                    }
                }
            }
        }
        engine.reap(&mut done, 1)?;
        for back in done.drain(..) {
            count += 1;
            free.push(load.completed(&back));
        }
    }
    Ok(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let usage = "engine_speed ENGINE FILE DEPTH SECONDS [stack|bare] [direct]";
    let [_, name, path, depth, seconds, rest @ ..] = &arguments[..] else {
        return Err(usage.into());
    };
    let (depth, seconds): (u32, u64) = (depth.parse()?, seconds.parse()?);
    let direct = rest.iter().any(|word| word == "direct");
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let len = file.metadata()?.len();
    let memory = Aligned::new(depth as usize * BLOCK as usize)?;
    let files = vec![EngineFile { fd: file.as_raw_fd(), len, writable: false }];
    let region = Some(memory.region());
    let config = EngineConfig { depth, files, region, direct, direct_alignment: 4096 };
    let row = find(name).ok_or("no such engine")?;
    let bare = rest.iter().any(|word| word == "bare");
    let opened = if bare {
        (row.open)(&config)?
    } else {
        build(row, &config, None, Arc::new(LegCounters::default()))?
    };
    let mut engine = opened.engine;
    let (clock, blocks) = (Clock::start(), len / u64::from(BLOCK));
    let started = vec![0; depth as usize];
    let mut load =
        Load { memory, blocks, random: 88_172_645_463_325_252, started, latency: 0, clock };
    let until = clock.now() + seconds * 1_000_000_000;
    let count = run(&mut load, engine.as_mut(), depth, until)?;
    let elapsed = clock.now();
    println!(
        "{}: {} IOPS, {} ns an I/O, mean latency {} ns {:?}",
        opened.actual,
        count * 1_000_000_000 / elapsed,
        elapsed / count,
        load.latency / count,
        opened.steps_down
    );
    Ok(())
}
