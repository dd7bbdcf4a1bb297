//! Marks in streams.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use crate::code::{Answer, Code, INVALID_HANDLE, NOT_READY};

/// The failure of one piece of work in a stream, until it is reported: 0 from then on. The stream
/// and the events that it came to after the failure share it.
pub(crate) type StreamError = Arc<AtomicI32>;

/// Reports the oldest failure that was not reported yet, once.
pub(crate) fn report(failures: &[StreamError]) -> Answer<()> {
    let codes = failures.iter().map(|failure| failure.swap(0, Ordering::AcqRel));
    match codes.into_iter().find(|&code| code != 0) {
        None => Ok(()),
        Some(code) => Err(Code(code)),
    }
}

/// A mark. Before it is first recorded it counts as reached.
#[derive(Debug, Default)]
pub(crate) struct Event {
    timed: bool,
    state: Mutex<State>,
    reached: Condvar,
}

#[derive(Debug, Default)]
struct State {
    recorded: u64,
    reached: u64,
    /// The failures that were not reported when the mark was reached: never one of later work.
    failures: Vec<StreamError>,
    /// When the last record was reached, by the device's clock.
    at: Option<Instant>,
}

impl Event {
    /// A mark that keeps the time or does not.
    pub(crate) fn new(timed: bool) -> Self {
        Self { timed, ..Self::default() }
    }

    /// When the last record was reached.
    pub(crate) fn time(&self) -> Answer<Instant> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.timed || state.recorded == 0 {
            return Err(INVALID_HANDLE);
        }
        state.at.filter(|_| state.reached == state.recorded).ok_or(NOT_READY)
    }

    /// Counts one more record and gives its number.
    pub(crate) fn record(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.recorded += 1;
        state.failures.clear();
        state.recorded
    }

    /// The stream has come to record `number`.
    pub(crate) fn reach(&self, number: u64, failures: &[StreamError], at: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reached = state.reached.max(number);
        if state.recorded == number {
            state.failures.extend_from_slice(failures);
            state.at = Some(at);
        }
        drop(state);
        self.reached.notify_all();
    }

    /// Whether the last record is reached.
    pub(crate) fn query(&self) -> Answer<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.reached < state.recorded {
            return Err(NOT_READY);
        }
        report(&state.failures)
    }

    /// The number of the last record.
    pub(crate) fn recorded(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).recorded
    }

    /// Waits until a record is reached, without a report of failures.
    pub(crate) fn pass(&self, number: u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.reached.wait_while(state, |state| state.reached < number);
        drop(wait);
    }

    /// Waits until the last record, as of now, is reached.
    pub(crate) fn sync(&self) -> Answer<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = state.recorded;
        let state = self
            .reached
            .wait_while(state, |state| state.reached < number)
            .unwrap_or_else(PoisonError::into_inner);
        report(&state.failures)
    }
}
