//! What is put into the program's stream.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gpuio_gpu::{DevPtr, GpuError, UserStream};
use gpuio_io::engine::Op;

use super::Served;
use super::order::{Order, Way};
use crate::fault::Fault;

/// What the stream calls us for.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The parameters may be read.
    Begin,
    /// So many rounds may begin.
    Reach(u64),
    /// So many rounds have to be done.
    Do(u64),
    /// The page-locked memory is free.
    Free,
}

/// Puts a transfer into the stream. When it fails, nothing of it happens later.
pub(super) fn put(
    stream: &UserStream,
    served: &'static Served,
    order: &Arc<Order>,
) -> Result<(), Fault> {
    let put = stream.entered(|| {
        // What is looked at stands there in the order in which the stream comes to it.
        let _one = order.pace.put();
        bring(stream, order);
        match (order.gathers(), order.op) {
            (true, Op::Read) if served.words => read(stream, order),
            (true, Op::Write) if served.words => write(stream, order),
            (true, Op::Read) => read_by_calls(stream, order),
            (true, Op::Write) => write_by_calls(stream, order),
            (false, _) if served.words => {
                reach(stream, order, 1)?;
                wait(stream, order, 0)
            }
            (false, _) => call(stream, order, Step::Do(1)),
        }
    });
    put.and_then(|put| put).map_err(|error| {
        order.abandon();
        Fault::Gpu(error)
    })
}

/// Managed memory shall be on the GPU before the kernel goes there. A refusal changes nothing but
/// the speed.
fn bring(stream: &UserStream, order: &Order) {
    if let Way::Gather { bring: Some((start, len)), .. } = order.way {
        // SAFETY: the caller of the transfer keeps the memory until the stream has passed.
        let _ = unsafe { stream.bring(DevPtr(start), len) };
    }
}

fn read(stream: &UserStream, order: &Arc<Order>) -> Result<(), GpuError> {
    reach(stream, order, order.rounds.min(2))?;
    for round in 0..order.rounds {
        wait(stream, order, round)?;
        gather(stream, order, round)?;
        if round + 2 < order.rounds {
            reach(stream, order, round + 3)?;
        }
    }
    let value = order.area.value(order.rounds);
    // SAFETY: a word of ours, which lives as long as the process.
    let stored = unsafe { stream.store(order.area.empty_seen(), value) };
    if stored.is_ok() {
        order.served.areas.give_later(order.area, value);
    }
    // Without that the area is never used again, which is no failure of the transfer.
    Ok(())
}

fn write(stream: &UserStream, order: &Arc<Order>) -> Result<(), GpuError> {
    begin(stream, order)?;
    for round in 0..order.rounds {
        if round >= 2 {
            wait(stream, order, round - 2)?;
        }
        gather(stream, order, round)?;
        reach(stream, order, round + 1)?;
    }
    wait(stream, order, order.rounds - 1)
}

fn read_by_calls(stream: &UserStream, order: &Arc<Order>) -> Result<(), GpuError> {
    for round in 0..order.rounds {
        call(stream, order, Step::Do(round + 1))?;
        gather(stream, order, round)?;
    }
    // Without that the area is never used again, which is no failure of the transfer.
    let _ = call(stream, order, Step::Free);
    Ok(())
}

fn write_by_calls(stream: &UserStream, order: &Arc<Order>) -> Result<(), GpuError> {
    begin(stream, order)?;
    for round in 0..order.rounds {
        gather(stream, order, round)?;
        call(stream, order, Step::Do(round + 1))?;
    }
    Ok(())
}

/// A write's parameters have to be known before its first bytes are taken.
fn begin(stream: &UserStream, order: &Arc<Order>) -> Result<(), GpuError> {
    if order.is_fixed() {
        order.begin();
        return Ok(());
    }
    call(stream, order, Step::Begin)
}

/// Has the stream tell that it has come to so many rounds: by a word, and where the sentry does not
/// look at it, or the stream is likely to be held up for longer than a call takes, by a call. That
/// stands behind the store and before the wait for the bytes, so that the way to it and back goes
/// on beside the reading.
fn reach(stream: &UserStream, order: &Arc<Order>, rounds: u64) -> Result<(), GpuError> {
    let (word, value) = (order.area.reached_seen(), order.area.value(rounds));
    // SAFETY: a word of ours, which lives as long as the process and is used atomically.
    unsafe { stream.store(word, value) }?;
    order.note_put();
    if order.pace.is_soon() && order.threads().look_at(order) {
        return Ok(());
    }
    call(stream, order, Step::Reach(rounds))?;
    // Not before the call is there: a transfer that was refused up to here has not begun.
    order.threads().look_at(order);
    Ok(())
}

fn wait(stream: &UserStream, order: &Order, round: u64) -> Result<(), GpuError> {
    let (word, value) = (order.area.served_seen(), order.area.value(round + 1));
    // SAFETY: a word of ours, which lives as long as the process and comes: threads store it that
    // wait for file I/O alone, or for work of another context, and where putting the rest fails
    // `abandon` does.
    unsafe { stream.wait_for(word, value) }?;
    order.note_put();
    Ok(())
}

fn gather(stream: &UserStream, order: &Order, round: u64) -> Result<(), GpuError> {
    let (_, list) = order.area.list(order.part(round), order.part_len);
    let (count, shape) = order.launch(round);
    let Some(kernel) = order.served.kernel() else {
        unreachable!("transfers go this way where there is a kernel")
    };
    // SAFETY: the list and the part live as long as the process and are filled before the stream
    // comes here; the caller of the transfer promises the memory, of which the list names what was
    // found to be reached.
    unsafe { kernel.launch_in(stream, list, count, shape) }?;
    order.note_put();
    Ok(())
}

fn call(stream: &UserStream, order: &Arc<Order>, step: Step) -> Result<(), GpuError> {
    let data = Box::into_raw(Box::new((Arc::clone(order), step)));
    // SAFETY: the function takes the box once, from any thread, and calls no driver.
    let put = unsafe { stream.call(called, data.cast()) };
    if put.is_err() {
        // SAFETY: from Box::into_raw, and the function is not called.
        drop(unsafe { Box::from_raw(data) });
    } else {
        order.note_put();
    }
    put
}

unsafe extern "C" fn called(data: *mut c_void) {
    // SAFETY: from Box::into_raw in `call`, and called once.
    let step = unsafe { Box::from_raw(data.cast::<(Arc<Order>, Step)>()) };
    // A panic must not leave; the hook has told of it.
    let _ = catch_unwind(AssertUnwindSafe(|| take(&step.0, step.1)));
}

fn take(order: &Arc<Order>, step: Step) {
    match step {
        Step::Begin => order.begin(),
        Step::Reach(rounds) => {
            if order.reach(rounds) {
                if order.is_reached() {
                    order.threads().watch.forget(order);
                }
                order.hand_over();
            }
        }
        Step::Do(rounds) => {
            order.reach(rounds);
            order.hand_over();
            if order.gathers() {
                order.work();
            }
            order.wait(rounds);
        }
        Step::Free => order.served.areas.give(order.area, order.rounds),
    }
}
