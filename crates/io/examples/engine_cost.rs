//! Nanoseconds that the stack of decorators adds to an I/O: the null engine bare and stacked,
//! in turn, 32 I/Os a batch, the clock read around many batches only. Prints the best of the
//! rounds, since noise only ever adds.
#![allow(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output is its result")]

use gpuio_io::buf::Aligned;
use gpuio_io::engine::{Engine, EngineConfig, Io, LegCounters, Op, build, find};
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const DEPTH: u32 = 32;
const BATCHES: u32 = 200_000;
const ROUNDS: u32 = 15;

fn nanoseconds_each(engine: &mut dyn Engine, ios: &[Io]) -> Result<f64, Box<dyn Error>> {
    let mut done = Vec::with_capacity(ios.len());
    let start = Instant::now();
    for _ in 0..BATCHES {
        for io in ios {
            black_box(engine.push(black_box(*io)));
        }
        engine.reap(&mut done, 1)?;
        black_box(&done);
        done.clear();
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCHES * DEPTH))
}

fn main() -> Result<(), Box<dyn Error>> {
    let memory = Aligned::new(DEPTH as usize * 4096)?;
    let (region, direct, direct_alignment) = (None, false, 512);
    let config = EngineConfig { depth: DEPTH, files: Vec::new(), region, direct, direct_alignment };
    let row = find("null").ok_or("the null engine is gone")?;
    let mut bare = (row.open)(&config)?.engine;
    let mut stack = build(row, &config, None, Arc::new(LegCounters::default()))?.engine;
    let io = |slot: u32| {
        // SAFETY: the null engine touches no memory.
        let span = unsafe { memory.span(slot as usize * 4096, 4096) };
        span.map(|span| Io { op: Op::Read, file: 0, offset: 0, span, token: slot })
    };
    let ios: Vec<Io> = (0..DEPTH).filter_map(io).collect();
    let (mut least_bare, mut least_stack) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        least_bare = least_bare.min(nanoseconds_each(bare.as_mut(), &ios)?);
        least_stack = least_stack.min(nanoseconds_each(stack.as_mut(), &ios)?);
    }
    let added = least_stack - least_bare;
    println!("bare {least_bare:.1} ns, stacked {least_stack:.1} ns, added {added:.1} ns an I/O");
    Ok(())
}
