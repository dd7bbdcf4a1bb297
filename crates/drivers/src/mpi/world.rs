//! All ranks of the job, and messages between rank 0 and each other rank.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::mpi::abi::Handle;
use crate::mpi::launcher::Launcher;
use crate::mpi::library::{self, Absent, Functions};

/// A length, then as many bytes: two MPI messages of the same tag, which MPI keeps in order.
const TAG: c_int = 7411;
/// A cancelled receive ends at once; a library that does not is left alone after this time.
const CANCEL_TIME: Duration = Duration::from_secs(1);
/// MPI_MAX_LIBRARY_VERSION_STRING is 8192 in MPICH and the largest of the three.
const VERSION_BYTES: usize = 8192;

#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    #[error(transparent)]
    Load(#[from] Absent),
    /// A call failed. Most libraries end the job instead, with a message of their own.
    #[error("{call} failed with error code {code} ({library})")]
    Call {
        call: &'static str,
        code: i32,
        /// The library's version.
        library: String,
    },
    /// The library and the launcher do not know each other.
    #[error(
        "{launcher} started {launched} processes, but {library} sees {seen}: the library does not \
         belong to this launcher; use the mpirun of that library, for Slurm `srun --mpi=pmix` or \
         `--mpi=pmi2`, or set GPUIO_MPI=/path/to/library"
    )]
    Unconnected {
        launcher: &'static str,
        /// Processes by the launcher's variables.
        launched: u32,
        /// The library's version.
        library: String,
        /// Ranks by the library.
        seen: u32,
    },
    /// A message is longer than an `int` counts.
    #[error("a message of {0} bytes is too long for MPI")]
    TooLong(usize),
}

/// An operation under way. MPI uses the buffer until `MPI_Test` reports the end.
#[derive(Debug)]
struct Pending {
    request: Handle,
    buffer: Box<[u8]>,
}

/// The part that is awaited of a rank.
#[derive(Debug)]
enum Awaited {
    Length(Pending),
    Bytes(Pending),
}

/// MPI, started. Not `Send`: only the thread that started MPI may call it.
#[derive(Debug)]
pub struct World {
    functions: Functions,
    library: String,
    rank: u32,
    size: u32,
    /// By receiver, the oldest first.
    sending: BTreeMap<u32, VecDeque<Pending>>,
    awaited: BTreeMap<u32, Awaited>,
    received: VecDeque<(u32, Vec<u8>)>,
    thread: PhantomData<*mut ()>,
}

impl World {
    /// Loads the library, `named` or one that fits the launcher, and starts MPI on this thread. It
    /// blocks until the ranks know each other: a second or more on many hosts.
    ///
    /// # Errors
    /// [`WorldError`].
    pub fn join(launcher: &Launcher, named: Option<&str>) -> Result<World, WorldError> {
        let functions = library::load(launcher, named)?;
        let library = version(&functions);
        let mut given = 0;
        let (none, wanted) = (std::ptr::null_mut(), functions.abi.funneled);
        // SAFETY: called once in the process; no arguments are passed on (MPI 4.1, 11.2.1).
        let code = unsafe { (functions.init)(none, none.cast(), wanted, &raw mut given) };
        check("MPI_Init_thread", code, &library)?;
        let world = functions.abi.world;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is started, and the address is of an int.
        let code = unsafe { (functions.rank)(world, &raw mut rank) };
        check("MPI_Comm_rank", code, &library)?;
        // SAFETY: as above.
        let code = unsafe { (functions.size)(world, &raw mut size) };
        check("MPI_Comm_size", code, &library)?;
        let number = |of: c_int| u32::try_from(of).unwrap_or(0);
        let mut joined = World {
            functions,
            library,
            rank: number(rank),
            size: number(size),
            sending: BTreeMap::new(),
            awaited: BTreeMap::new(),
            received: VecDeque::new(),
            thread: PhantomData,
        };
        if joined.size != launcher.size {
            let (library, seen) = (joined.library.clone(), joined.size);
            joined.finalize();
            let Launcher { name, size, .. } = *launcher;
            return Err(WorldError::Unconnected { launcher: name, launched: size, library, seen });
        }
        let peers = if joined.rank == 0 { 1..joined.size } else { 0..1 };
        for peer in peers {
            joined.await_length(peer)?;
        }
        Ok(joined)
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The library with its version, one line, and its binary interface.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Starts to send a message: from rank 0 to any other, from any other to rank 0. It is under
    /// way when this returns; [`World::receive`] moves it on.
    ///
    /// # Errors
    /// [`WorldError::TooLong`], and [`WorldError::Call`].
    pub fn send(&mut self, to: u32, message: &[u8]) -> Result<(), WorldError> {
        c_int::try_from(message.len()).map_err(|_| WorldError::TooLong(message.len()))?;
        let length = (message.len() as u64).to_le_bytes();
        self.start_send(to, Box::new(length))?;
        if message.is_empty() { Ok(()) } else { self.start_send(to, message.into()) }
    }

    /// A message that has arrived, with its sender; messages of one sender come in order. Does not
    /// wait.
    ///
    /// # Errors
    /// [`WorldError::Call`].
    pub fn receive(&mut self) -> Result<Option<(u32, Vec<u8>)>, WorldError> {
        self.advance_sends()?;
        if self.received.is_empty() {
            let peers: Vec<u32> = self.awaited.keys().copied().collect();
            for peer in peers {
                self.advance_receive(peer)?;
            }
        }
        Ok(self.received.pop_front())
    }

    /// Whether everything that was sent has left its buffer.
    ///
    /// # Errors
    /// [`WorldError::Call`].
    pub fn has_sent(&mut self) -> Result<bool, WorldError> {
        self.advance_sends()?;
        Ok(self.sending.is_empty())
    }

    /// Ends all ranks with this exit code, those that hang included.
    pub fn abort(&self, code: i32) {
        // SAFETY: MPI is started. Should it return, the caller ends the process.
        let _ = unsafe { (self.functions.abort)(self.functions.abi.world, code) };
    }

    /// Ends MPI; waits for the other ranks to do the same. Call it when every message has arrived.
    pub fn finalize(mut self) {
        for (_, awaited) in std::mem::take(&mut self.awaited) {
            let (Awaited::Length(pending) | Awaited::Bytes(pending)) = awaited;
            self.cancel(pending);
        }
        // SAFETY: MPI is started, and this is the thread that started it.
        let _ = unsafe { (self.functions.finalize)() };
    }

    fn start_send(&mut self, to: u32, mut buffer: Box<[u8]>) -> Result<(), WorldError> {
        let request = self.start(self.functions.isend, "MPI_Isend", to, &mut buffer)?;
        self.sending.entry(to).or_default().push_back(Pending { request, buffer });
        Ok(())
    }

    fn start_receive(&self, from: u32, length: usize) -> Result<Pending, WorldError> {
        let mut buffer = vec![0; length].into_boxed_slice();
        let request = self.start(self.functions.irecv, "MPI_Irecv", from, &mut buffer)?;
        Ok(Pending { request, buffer })
    }

    /// Starts an operation on the buffer, which must stay where it is until the operation ends.
    fn start(
        &self,
        start: unsafe extern "C" fn(
            *mut c_void,
            c_int,
            Handle,
            c_int,
            c_int,
            Handle,
            *mut Handle,
        ) -> c_int,
        call: &'static str,
        peer: u32,
        buffer: &mut [u8],
    ) -> Result<Handle, WorldError> {
        let abi = &self.functions.abi;
        let count = c_int::try_from(buffer.len()).map_err(|_| WorldError::TooLong(buffer.len()))?;
        let peer = c_int::try_from(peer).unwrap_or(c_int::MAX);
        // MPICH writes only the low half, an int.
        let mut request: Handle = 0;
        let (at, to) = (buffer.as_mut_ptr().cast(), &raw mut request);
        // SAFETY: the buffer is on the heap, has `count` bytes, and is kept in a `Pending` until
        // MPI_Test reports the end, or for ever (`Drop`).
        let code = unsafe { start(at, count, abi.byte, peer, TAG, abi.world, to) };
        check(call, code, &self.library)?;
        Ok(request)
    }

    /// Whether an operation has ended.
    fn test(&self, pending: &mut Pending) -> Result<bool, WorldError> {
        let mut done = 0;
        // MPI_Status has 20 to 32 bytes in the three interfaces.
        let mut status = [0_u64; 8];
        let request = &raw mut pending.request;
        // SAFETY: the request is of this MPI and not ended; the status has room for the largest.
        let code =
            unsafe { (self.functions.test)(request, &raw mut done, status.as_mut_ptr().cast()) };
        check("MPI_Test", code, &self.library)?;
        Ok(done != 0)
    }

    /// Only the oldest of each receiver is looked at: messages to a rank that takes none pile up,
    /// and Open MPI gives its processor away in each look that finds nothing.
    fn advance_sends(&mut self) -> Result<(), WorldError> {
        let mut all = std::mem::take(&mut self.sending);
        let mut ended = Ok(());
        for queue in all.values_mut() {
            while let (Ok(()), Some(oldest)) = (&ended, queue.front_mut()) {
                match self.test(oldest) {
                    Ok(true) => drop(queue.pop_front()),
                    Ok(false) => break,
                    Err(error) => ended = Err(error),
                }
            }
        }
        all.retain(|_, queue| !queue.is_empty());
        self.sending = all;
        ended
    }

    fn await_length(&mut self, peer: u32) -> Result<(), WorldError> {
        let pending = self.start_receive(peer, size_of::<u64>())?;
        self.awaited.insert(peer, Awaited::Length(pending));
        Ok(())
    }

    fn advance_receive(&mut self, peer: u32) -> Result<(), WorldError> {
        while let Some(mut awaited) = self.awaited.remove(&peer) {
            let (Awaited::Length(pending) | Awaited::Bytes(pending)) = &mut awaited;
            match self.test(pending) {
                Ok(true) => {}
                other => {
                    self.awaited.insert(peer, awaited);
                    return other.map(drop);
                }
            }
            match awaited {
                Awaited::Length(pending) => {
                    let mut length = [0; 8];
                    length.copy_from_slice(&pending.buffer);
                    let length = u64::from_le_bytes(length);
                    if length > 0 {
                        let length = usize::try_from(length).unwrap_or(usize::MAX);
                        let bytes = self.start_receive(peer, length)?;
                        self.awaited.insert(peer, Awaited::Bytes(bytes));
                        continue;
                    }
                    self.received.push_back((peer, Vec::new()));
                }
                Awaited::Bytes(pending) => {
                    self.received.push_back((peer, pending.buffer.into_vec()));
                }
            }
            self.await_length(peer)?;
        }
        Ok(())
    }

    fn cancel(&self, mut pending: Pending) {
        // SAFETY: a receive that has not ended; cancelling it is local (MPI 4.1, 3.8.4).
        let _ = unsafe { (self.functions.cancel)(&raw mut pending.request) };
        let began = Instant::now();
        while began.elapsed() < CANCEL_TIME {
            if !matches!(self.test(&mut pending), Ok(false)) {
                return;
            }
        }
        // MPI may still write there.
        std::mem::forget(pending);
    }
}

impl Drop for World {
    /// MPI goes on in the background: its buffers stay.
    fn drop(&mut self) {
        std::mem::take(&mut self.sending).into_iter().for_each(std::mem::forget);
        std::mem::take(&mut self.awaited).into_values().for_each(std::mem::forget);
    }
}

fn check(call: &'static str, code: c_int, library: &str) -> Result<(), WorldError> {
    // MPI_SUCCESS is 0 in all three.
    if code == 0 {
        Ok(())
    } else {
        Err(WorldError::Call { call, code, library: library.to_owned() })
    }
}

/// The library's own words, first line, with the interface by which it is used.
fn version(functions: &Functions) -> String {
    let mut text = vec![0_u8; VERSION_BYTES + 1];
    let mut length = 0;
    // SAFETY: allowed before MPI_Init_thread (MPI 4.1, 9.1.1); the buffer has the largest size.
    let code = unsafe { (functions.version)(text.as_mut_ptr().cast::<c_char>(), &raw mut length) };
    let length = if code == 0 { usize::try_from(length).unwrap_or(0) } else { 0 };
    let text = String::from_utf8_lossy(&text[..length.min(VERSION_BYTES)]);
    let text = text.trim_end_matches('\0').replace('\t', " ");
    // "Open MPI v4.1.4, package: Debian OpenMPI, …"; "MPICH Version:      4.0.2\nMPICH …".
    let first = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = first.split(',').next().unwrap_or_default().split_whitespace().collect();
    let (words, interface) = (words.join(" "), functions.abi.name);
    if words.starts_with(interface) { words } else { format!("{words} ({interface})") }
}
