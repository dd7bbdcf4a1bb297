//! The properties of an engine.

/// One engine: the system interface between files and host memory.
#[derive(Debug, Clone, Copy)]
pub struct EngineInfo {
    /// The name in job files and on the command line.
    pub name: &'static str,
    /// One line for `--help` and the list of engines.
    pub summary: &'static str,
    /// Whether more than one I/O can be out: false means that the calling thread does the I/O.
    pub asynchronous: bool,
    /// Whether threads may work for it that can't be distinguished from others, such as those in
    /// which io_uring does what would block (io_uring(7), "io-wq"): the CPU time of the thread that
    /// drives the engine, and of the threads that it reports as its own, is then not all that it
    /// takes.
    pub unseen_threads: bool,
}
