//! A stand-in for MPI, for tests: ranks are threads of one process. The tests of the program use
//! it too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use super::Link;

/// A link by channels.
pub(super) struct Channels {
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) to: Vec<Sender<(u32, Vec<u8>)>>,
    pub(super) from: Receiver<(u32, Vec<u8>)>,
    /// Sends nothing any more, as a process that was stopped.
    pub(super) frozen: Arc<AtomicBool>,
    /// Whether it ended all ranks; where there is none, that is a panic.
    pub(super) aborted: Option<Arc<AtomicBool>>,
}

impl Link for Channels {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn library(&self) -> &'static str {
        "channels"
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), String> {
        if !self.frozen.load(Ordering::Relaxed) {
            // A rank that left hears nothing.
            let _ = self.to[to as usize].send((self.rank, message.to_vec()));
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(u32, Vec<u8>)>, String> {
        Ok(self.from.try_recv().ok())
    }

    fn has_sent(&mut self) -> bool {
        true
    }

    fn abort(&self, code: u8) {
        match &self.aborted {
            Some(aborted) => aborted.store(true, Ordering::Relaxed),
            None => panic!("ended by MPI_Abort with {code}"),
        }
    }

    fn finalize(self) {}
}
