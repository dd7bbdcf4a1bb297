//! The door.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use gpuio_io::engine::Op;

use crate::batch::Batch;
use crate::born::{Born, OfProcess};
use crate::crew::{Crew, End};
use crate::desk::{self, Small};
use crate::fault::{Fault, FileError, PlaceError};
use crate::file::File;
use crate::gpus::Gpus;
use crate::job::{Asked, Job, LARGE};
use crate::moved::Moved;
use crate::place::Place;
use crate::settings::Settings;
use crate::stream::Streams;

/// Moves bytes between files and memory of callers. Cloning is cheap. See the crate's page.
#[derive(Debug, Clone)]
pub struct Transfer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    state: OfProcess<State>,
}

/// What one process keeps for a transfer. It is never freed: threads of ours may use it until the
/// process is gone, and the driver must not be called to free what it gave.
#[derive(Debug)]
pub(crate) struct State {
    born: Born,
    pub(crate) settings: Settings,
    pub(crate) gpus: Gpus,
    pub(crate) crew: Crew,
    pub(crate) streams: Streams,
    /// In a child of the process in which the transfer was made.
    pub(crate) forked: bool,
}

impl State {
    fn new(settings: &Settings, forked: bool) -> Self {
        Self {
            born: Born::here(),
            gpus: Gpus::new(settings),
            crew: Crew::new(settings),
            streams: Streams::new(settings),
            settings: settings.clone(),
            forked,
        }
    }
}

impl Transfer {
    /// Makes one. No call of the driver: it is loaded when the first address is asked about.
    ///
    /// What it takes of the machine (threads, page-locked memory, the driver) stays taken until the
    /// process ends, so a process makes one.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let state = OfProcess::now(State::new(&settings, false));
        Self(Arc::new(Shared { settings, state }))
    }

    /// The state of this process.
    pub(crate) fn state(&self) -> &'static State {
        self.0.state.get(|state| &state.born, || State::new(&self.0.settings, true))
    }

    /// A file, by the caller's descriptor, which is duplicated and may be closed afterwards.
    ///
    /// # Errors
    ///
    /// The descriptor is not open, or no regular file and no block device.
    pub fn file(&self, fd: BorrowedFd<'_>) -> Result<File, FileError> {
        File::open(fd, self.0.settings.cold, self.0.settings.strict)
    }

    /// What the memory at an address is. The first question loads the driver, which takes some
    /// hundred milliseconds; where there is none, all memory is the host's. Later ones take less
    /// than a microsecond. The calling thread needs no context.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn place(&self, address: u64) -> Result<Place, PlaceError> {
        let state = self.state();
        if state.forked {
            // Addresses of GPU memory are reserved in the child too and hold nothing.
            return Ok(Place::host());
        }
        let Some(driver) = state.gpus.driver() else {
            return Ok(Place::host());
        };
        let ask = || Place::ask(driver, address, |device| state.gpus.device(device));
        match ask() {
            Err(PlaceError::Gpu(error)) if error.is_reset() => {
                let renewed = error.device.is_some_and(|index| state.gpus.renew(index));
                if renewed { ask() } else { Err(error.into()) }
            }
            asked => asked,
        }
    }

    /// Whether what was told of an address may still hold: not where the device was reset since.
    #[must_use]
    pub fn is_current(&self, place: &Place) -> bool {
        let Some(index) = place.device() else {
            return true;
        };
        let state = self.state();
        !state.forked && state.gpus.current(index).is_some_and(|it| it.serial() == place.serial)
    }

    /// Reads `len` bytes at `offset` of the file into the memory at `address`, which `place` was
    /// asked for (its own address, or another of the same allocation). Returns when they are there:
    /// later work of any stream, and the host, see them. Where the file ends before `len` bytes, a
    /// GPU's memory behind them is left as it was; the host's may be changed up to `len` bytes, as
    /// by any read with `O_DIRECT`.
    ///
    /// # Errors
    ///
    /// What failed first, by offset. What the memory then holds is not defined.
    ///
    /// # Safety
    ///
    /// Until the call returns, `len` bytes at `address` are live memory of that place that nobody
    /// else uses.
    pub unsafe fn read(
        &self,
        file: &File,
        place: Place,
        address: u64,
        len: usize,
        offset: u64,
    ) -> Result<Moved, Fault> {
        self.call(Op::Read, file, place, address, len, offset)
    }

    /// Writes `len` bytes from the memory at `address` to `offset` of the file. What other threads
    /// and streams wrote to that memory before the call counts, whether or not anybody waited for
    /// it, only if it is done: the caller waits for its own streams.
    ///
    /// # Errors
    ///
    /// What failed first, by offset. How much of the rest was written is not defined.
    ///
    /// # Safety
    ///
    /// Until the call returns, `len` bytes at `address` are live memory of that place that nobody
    /// else writes.
    pub unsafe fn write(
        &self,
        file: &File,
        place: Place,
        address: u64,
        len: usize,
        offset: u64,
    ) -> Result<Moved, Fault> {
        self.call(Op::Write, file, place, address, len, offset)
    }

    /// Makes a call, and once more where it finds out that the device was reset: its memory may be
    /// new memory at the same address.
    fn call(
        &self,
        op: Op,
        file: &File,
        place: Place,
        address: u64,
        len: usize,
        offset: u64,
    ) -> Result<Moved, Fault> {
        let state = self.state();
        let once = |place: Place| {
            if let Some(device) = place.device()
                && (1..=desk::SMALL).contains(&(len as u64))
                && offset <= i64::MAX.cast_unsigned() - desk::SMALL
                && !state.is_forked()
            {
                let asked = Small { op, file: &file.0, place, address, len, offset };
                if let Some(done) = desk::run(state.gpus.device(device)?, &asked) {
                    return done;
                }
            }
            let asked = Asked { op, file: file.clone(), place, address, len: len as u64, offset };
            state.run(asked)
        };
        match once(place) {
            Err(Fault::Gpu(error)) if error.is_reset() => {
                let renewed = place.device().is_some_and(|index| state.gpus.renew(index));
                let again = self.place(address).ok().filter(|now| now.device() == place.device());
                match again.filter(|_| renewed) {
                    Some(place) => once(place),
                    None => Err(Fault::Gpu(error)),
                }
            }
            done => done,
        }
    }

    /// An empty batch for at most `capacity` entries at once.
    #[must_use]
    pub fn batch(&self, capacity: u32) -> Batch {
        Batch::new(self.state(), capacity)
    }
}

impl State {
    /// Whether this is the process that the state belongs to.
    pub(crate) fn is_here(&self) -> bool {
        self.born.is_here()
    }

    /// Whether it is that of a child of `fork(2)`.
    pub(crate) fn is_forked(&self) -> bool {
        self.forked
    }

    /// Runs one call to its end.
    pub(crate) fn run(&'static self, asked: Asked) -> Result<Moved, Fault> {
        self.run_by(asked, true, Crew::run)
    }

    /// As [`State::run`], for a thread that has a turn.
    pub(crate) fn run_with_turn(&'static self, asked: Asked) -> Result<Moved, Fault> {
        self.run_by(asked, false, Crew::run_with_turn)
    }

    fn run_by(
        &'static self,
        asked: Asked,
        sleeps: bool,
        run: impl FnOnce(&'static Crew, &'static Gpus, &Arc<Job>),
    ) -> Result<Moved, Fault> {
        let Some(asked) = self.fitting(asked)? else {
            return Ok(Moved::default());
        };
        let pace = asked.file.0.pace(asked.op, asked.len >= LARGE);
        let end = match asked.place.device() {
            None => End::Host,
            Some(index) if self.gpus.device(index)?.uses_engines() => End::Engines,
            Some(_) => End::Kernel,
        };
        let most = self.settings.chunk() as u64;
        let (by, piece) = self.crew.share(asked.len, pace, end, sleeps, most);
        let job = Arc::new(Job::new(asked, by, piece));
        run(&self.crew, &self.gpus, &job);
        job.outcome()
    }

    /// The call as far as the file can go: nothing where it is empty, an error where it begins
    /// beyond the largest offset, a shorter one where it ends there or far behind the file.
    fn fitting(&self, mut asked: Asked) -> Result<Option<Asked>, Fault> {
        if self.forked && asked.place.device().is_some() {
            return Err(Fault::Forked);
        }
        let most = i64::MAX.cast_unsigned();
        let room = most.saturating_sub(asked.offset);
        let call = if asked.op == Op::Read { "pread" } else { "pwrite" };
        let outside = match asked.op {
            Op::Read => asked.offset > most,
            Op::Write => asked.len > room,
        };
        if outside {
            let Asked { offset, len, file, .. } = asked;
            let failed = crate::fault::Failed { call, errno: libc::EINVAL, offset, len };
            return Err(file.0.fault(failed));
        }
        asked.len = asked.len.min(room);
        // One question for the size saves as many empty reads as there are pieces behind the end.
        // A file that has no size to tell (of proc, of FUSE) says 0 and is read as it is.
        let chunk = self.settings.chunk() as u64;
        if asked.op == Op::Read && asked.len > chunk {
            let size = asked.file.0.size().filter(|size| *size > asked.offset);
            if let Some(size) = size {
                asked.len = asked.len.min((size - asked.offset).saturating_add(1));
            }
        }
        Ok((asked.len > 0).then_some(asked))
    }
}
