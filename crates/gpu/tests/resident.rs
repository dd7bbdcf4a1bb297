//! The resident kernel against copies by the CPU, on gpuio's software GPU, or with
//! `GPUIO_TEST_GPU=system` on the system's.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the copies and kernels of the API are unsafe")]

use std::time::{Duration, Instant};

use gpuio_gpu::resident::{Direction, LIFETIME, Resident, Sides};
use gpuio_gpu::{Context, DevPtr, DeviceBuf, Driver, MemoryKind, Pinned, Stream};
use gpuio_testkit::gpu::which;

const STRIDE: usize = 64 << 10;

struct Bench {
    context: Context,
    resident: Resident,
    host: Pinned,
    device: DeviceBuf,
    stream: Stream,
    slots: u32,
}

fn bench(slots: u32) -> Bench {
    let driver = Driver::load(&which()).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    context.make_current().unwrap();
    let len = STRIDE * slots as usize;
    let host = Pinned::alloc(&context, len).unwrap();
    let device = DeviceBuf::alloc(&context, MemoryKind::Device, len).unwrap();
    let sides = Sides { host: host.ptr(), device: device.ptr(), stride: STRIDE as u64, slots };
    let resident = Resident::new(&context, sides).unwrap();
    let stream = Stream::new(&context).unwrap();
    Bench { context, resident, host, device, stream, slots }
}

impl Bench {
    fn slot(&mut self, slot: u32) -> &mut [u8] {
        // SAFETY: inside the pinned memory.
        let start = unsafe { self.host.as_ptr().add(slot as usize * STRIDE) };
        // SAFETY: the slot is idle when the test asks for it.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), STRIDE) }
    }

    fn on_device(&self, slot: u32) -> Vec<u8> {
        let mut bytes = vec![0; STRIDE];
        let from = self.device.ptr().byte_add(u64::from(slot) * STRIDE as u64);
        // SAFETY: ranges of the test's own; the wait follows.
        unsafe { self.stream.copy(DevPtr(bytes.as_mut_ptr() as u64), from, STRIDE).unwrap() };
        self.stream.sync().unwrap();
        bytes
    }

    fn submit(&mut self, slot: u32, len: u32, direction: Direction) {
        // SAFETY: the test uses no slot that is in flight.
        unsafe { self.resident.submit(slot, len, direction) }.unwrap();
    }

    fn wait(&mut self) {
        let began = Instant::now();
        while self.resident.in_flight() > 0 {
            self.resident.take().unwrap();
            assert!(began.elapsed() < Duration::from_secs(180), "no answer");
        }
    }
}

fn data(seed: u32) -> Vec<u8> {
    (0..STRIDE as u64)
        .map(|at| at.wrapping_mul(u64::from(seed) * 2 + 0x9E37).to_le_bytes()[1])
        .collect()
}

#[test]
fn blocks_of_any_length_cross_in_both_directions() {
    let mut bench = bench(8);
    let lens = [1, 15, 16, 17, 4095, 4096, 4097, 16384, 65535, 65536];
    for (round, &len) in lens.iter().enumerate() {
        let seed = u32::try_from(round).unwrap();
        let slot = seed % bench.slots;
        let old = bench.on_device(slot);
        let new = data(seed);
        bench.slot(slot).copy_from_slice(&new);
        bench.submit(slot, len, Direction::In);
        bench.wait();
        let len = len as usize;
        let there = bench.on_device(slot);
        assert_eq!(there[..len], new[..len], "{len} bytes in");
        assert_eq!(there[len..], old[len..], "past {len} bytes in");
        bench.slot(slot).fill(0);
        bench.submit(slot, u32::try_from(len).unwrap(), Direction::Out);
        bench.wait();
        assert_eq!(bench.slot(slot)[..len], new[..len], "{len} bytes out");
        assert!(bench.slot(slot)[len..].iter().all(|&byte| byte == 0), "past {len} bytes out");
    }
}

#[test]
fn commands_are_answered_in_order_also_more_than_the_mailbox_has_words() {
    // Three slots, so the mailbox has four words, and is exited round many times.
    let mut bench = bench(3);
    let mut submitted = 0_u32;
    let mut taken = 0_u32;
    while taken < 300 {
        if submitted < 300 && submitted - taken < 3 {
            let slot = submitted % 3;
            let new = data(submitted);
            bench.slot(slot).copy_from_slice(&new);
            bench.submit(slot, 4096, Direction::In);
            submitted += 1;
            continue;
        }
        let count = u32::try_from(bench.resident.take().unwrap()).unwrap();
        for done in taken..taken + count {
            assert_eq!(bench.on_device(done % 3)[..4096], data(done)[..4096], "command {done}");
        }
        taken += count;
    }
}

#[test]
fn a_kernel_that_went_is_launched_again() {
    let mut bench = bench(2);
    let mut is_gone = false;
    for (seed, leaves) in (0..).zip([true, false, true, true, false]) {
        let (new, before) = (data(seed), bench.resident.launches());
        bench.slot(1).copy_from_slice(&new);
        bench.submit(1, 4096, Direction::In);
        bench.wait();
        assert_eq!(bench.on_device(1)[..4096], new[..4096], "round {seed}");
        assert!(!is_gone || bench.resident.launches() > before, "round {seed}: nobody was there");
        if leaves {
            // Until the kernel has found nothing to do, and has left.
            bench.context.synchronize().unwrap();
        }
        is_gone = leaves;
    }
    // Also one that always has work goes in the end, and nothing is lost.
    let began = Instant::now();
    let mut rounds = 0_u32;
    while began.elapsed() < LIFETIME * 2 || rounds <= 100 {
        let new = data(rounds);
        bench.slot(0).copy_from_slice(&new);
        bench.submit(0, 4096, Direction::In);
        bench.wait();
        rounds += 1;
        if rounds.is_multiple_of(64) {
            assert_eq!(bench.on_device(0)[..4096], new[..4096], "round {rounds}");
        }
    }
}

#[test]
fn a_kernel_that_always_has_work_goes_in_the_end_and_nothing_is_lost() {
    let mut bench = bench(3);
    let began = Instant::now();
    let (mut submitted, mut taken) = (0_u64, 0_u64);
    // Two commands wait at any time, so that the kernel never finds none.
    while began.elapsed() < LIFETIME * 3 || submitted <= 300 {
        while submitted - taken < 3 {
            bench.submit(u32::try_from(submitted % 3).unwrap(), 4096, Direction::In);
            submitted += 1;
        }
        taken += bench.resident.take().unwrap();
    }
    bench.wait();
    assert!(bench.resident.launches() > 1, "{} launches", bench.resident.launches());
}

#[test]
fn sides_that_do_not_suit_are_refused() {
    let bench = bench(1);
    let context = bench.stream.context();
    let good = Sides { host: bench.host.ptr(), device: bench.device.ptr(), stride: 4096, slots: 1 };
    for sides in [
        Sides { stride: 4097, ..good },
        Sides { host: good.host.byte_add(8), ..good },
        Sides { device: good.device.byte_add(1), ..good },
        Sides { slots: 0, ..good },
        Sides { slots: (1 << 15) + 1, ..good },
    ] {
        let error = Resident::new(context, sides).unwrap_err();
        assert!(error.to_string().contains("resident kernel takes 1 to 32767 slots"), "{error}");
    }
}
