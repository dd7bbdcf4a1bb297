//! How messages travel: by MPI, or within a process in tests.

use gpuio_drivers::mpi::World;

/// Messages between rank 0 and each other rank. All calls come from one thread, and none blocks
/// but the last.
pub trait Link {
    /// This process's rank.
    fn rank(&self) -> u32;
    /// Ranks.
    fn size(&self) -> u32;
    /// The library that carries the messages, in words.
    fn library(&self) -> &str;
    /// Starts to send.
    ///
    /// # Errors
    /// The error, in words.
    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), String>;
    /// A message that has arrived, and its sender.
    ///
    /// # Errors
    /// The error, in words.
    fn receive(&mut self) -> Result<Option<(u32, Vec<u8>)>, String>;
    /// Whether all messages have left.
    fn has_sent(&mut self) -> bool;
    /// Ends the processes of all ranks.
    fn abort(&self, code: u8);
    /// Leaves; waits for the others to do the same.
    fn finalize(self);
}

impl Link for World {
    fn rank(&self) -> u32 {
        World::rank(self)
    }

    fn size(&self) -> u32 {
        World::size(self)
    }

    fn library(&self) -> &str {
        World::library(self)
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), String> {
        World::send(self, to, message).map_err(|error| error.to_string())
    }

    fn receive(&mut self) -> Result<Option<(u32, Vec<u8>)>, String> {
        World::receive(self).map_err(|error| error.to_string())
    }

    fn has_sent(&mut self) -> bool {
        World::has_sent(self).unwrap_or(true)
    }

    fn abort(&self, code: u8) {
        World::abort(self, i32::from(code));
    }

    fn finalize(self) {
        World::finalize(self);
    }
}
