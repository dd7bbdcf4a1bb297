//! The default streams of each context, made when they are first used.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use crate::code::Answer;
use crate::machine::Machine;
use crate::stream::Stream;

/// The default stream of a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Which {
    /// The default stream of all threads: null and `CU_STREAM_LEGACY`. Other than in hardware, it
    /// has no order with streams that were made without `CU_STREAM_NON_BLOCKING`.
    Legacy,
    /// The default stream of one thread: `CU_STREAM_PER_THREAD`.
    PerThread(ThreadId),
}

impl Which {
    /// The default stream of a handle; none for a stream that was created.
    pub(crate) fn of(handle: *mut c_void) -> Option<Self> {
        match handle.addr() {
            0 | 1 => Some(Self::Legacy),
            2 => Some(Self::PerThread(std::thread::current().id())),
            _ => None,
        }
    }
}

/// Those that were used, by context.
#[derive(Debug, Default)]
pub(crate) struct Defaults(Mutex<HashMap<(usize, Which), Arc<Stream>>>);

impl Defaults {
    /// The default stream of a context.
    pub(crate) fn get(
        &self,
        machine: &'static Machine,
        device: u32,
        context: usize,
        which: Which,
    ) -> Answer<Arc<Stream>> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = made.get(&(context, which)) {
            return Ok(Arc::clone(stream));
        }
        let stream = Arc::new(Stream::new(machine, device, context)?);
        made.insert((context, which), Arc::clone(&stream));
        Ok(stream)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Takes out those of a context.
    pub(crate) fn take(&self, context: usize) -> Vec<Arc<Stream>> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.extract_if(|(of, _), _| *of == context).map(|(_, stream)| stream).collect()
    }
}
