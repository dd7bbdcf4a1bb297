//! A stand-in for MPI, for tests: ranks are threads of one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use crate::ranks::Link;

#[derive(Debug)]
pub struct Channels {
    pub rank: u32,
    pub size: u32,
    pub to: Vec<Sender<(u32, Vec<u8>)>>,
    pub from: Receiver<(u32, Vec<u8>)>,
    /// Sends nothing any more, as a process that was stopped.
    pub frozen: Arc<AtomicBool>,
    /// How long each look for a message takes, in ms: a busy machine, or a process that is stopped.
    pub slow: Arc<AtomicU64>,
    /// Whether it ended all ranks; where there is none, that is a panic.
    pub aborted: Option<Arc<AtomicBool>>,
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
        let slow = self.slow.load(Ordering::Relaxed);
        if slow > 0 {
            std::thread::sleep(Duration::from_millis(slow));
        }
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
