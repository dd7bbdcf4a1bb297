//! Kernels that keep the device busy, on gpuio's software GPU, or with `GPUIO_TEST_GPU=system` on
//! the system's.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use gpuio_gpu::{Busy, BusyWith, Context, Driver, Event, Wait};
use gpuio_testkit::child;
use gpuio_testkit::gpu::{on_system, which};

fn context() -> Context {
    let driver = Driver::load(&which()).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    context.make_current().unwrap();
    context
}

/// Nanoseconds that so many launches take by the device's clock. A long one before them gives the
/// host the time to put them there, so that the device never waits for it.
fn time(busy: &mut Busy, context: &Context, launches: u32, pieces: u64) -> f64 {
    let marks = [(); 2].map(|()| Event::timed(context, Wait::Block).unwrap());
    busy.launch(5000 * u64::from(busy.blocks())).unwrap();
    marks[0].record(busy.stream()).unwrap();
    for _ in 0..launches {
        busy.launch(pieces).unwrap();
    }
    marks[1].record(busy.stream()).unwrap();
    marks[1].sync().unwrap();
    marks[1].ns_since(&marks[0]).unwrap()
}

#[test]
fn twice_the_work_takes_twice_the_time() {
    let context = context();
    let sms = context.driver().multiprocessors(0).unwrap();
    for with in [BusyWith::Compute, BusyWith::Memory] {
        let mut busy = Busy::load(&context, with, sms).unwrap();
        // The shortest of some: a thread that has to wait for a processor launches too late.
        let mut shortest = |pieces: u64| {
            let times = (0..10).map(|_| time(&mut busy, &context, 20, pieces * u64::from(sms)));
            times.fold(f64::INFINITY, f64::min)
        };
        let (one, two) = (shortest(20), shortest(40));
        assert!((1.8..2.2).contains(&(two / one)), "{with:?}: {one} ns, then {two} ns");
        if !on_system() {
            // 20 launches of 20 pieces of 20 us, whatever else this machine does.
            assert!((one - 8e6).abs() < 1e3, "{with:?}: {one} ns, and 8 ms are its work");
        }
    }
}

#[test]
fn each_block_has_a_multiprocessor_of_its_own() {
    child::passes_on_software(blocks_and_multiprocessors, &[("GPUIO_SOFT_SMS", "132")]);
    if on_system() {
        blocks_and_multiprocessors();
    }
}

#[test]
#[ignore = "run by each_block_has_a_multiprocessor_of_its_own, with its environment"]
fn blocks_and_multiprocessors() {
    let context = context();
    let sms = context.driver().multiprocessors(0).unwrap();
    for with in [BusyWith::Compute, BusyWith::Memory] {
        for blocks in [1, sms.div_ceil(2), sms] {
            let mut busy = Busy::load(&context, with, blocks).unwrap();
            let pieces = u64::from(blocks) * 20;
            assert_eq!(busy.occupied(pieces).unwrap(), blocks, "{with:?} of {sms}");
            // Again: no bit of the launch before is left, and the counters were put back.
            assert_eq!(busy.occupied(pieces).unwrap(), blocks, "{with:?} of {sms}");
        }
    }
}

#[test]
fn events_without_time_have_none() {
    let context = context();
    let mut busy = Busy::load(&context, BusyWith::Compute, 1).unwrap();
    busy.launch(1).unwrap();
    let [timed, untimed] =
        [Event::timed(&context, Wait::Spin).unwrap(), Event::new(&context, Wait::Spin).unwrap()];
    timed.record(busy.stream()).unwrap();
    untimed.record(busy.stream()).unwrap();
    busy.stream().sync().unwrap();
    assert_eq!(timed.ns_since(&timed).unwrap(), 0.0);
    assert!(untimed.ns_since(&timed).is_err());
}
