//! pread(2) and pwrite(2), on the thread that pushes.

use super::{
    Done, Engine, EngineConfig, EngineError, EngineFile, Io, IoFault, Op, OpenedEngine, Push,
};
use std::io;
use std::os::fd::RawFd;

pub(super) fn open(config: &EngineConfig) -> Result<OpenedEngine, EngineError> {
    let engine = Box::new(Psync { fds: fds(&config.files) });
    Ok(OpenedEngine {
        engine,
        actual: "psync".to_owned(),
        steps_down: Vec::new(),
        helpers: Vec::new(),
    })
}

struct Psync {
    fds: Vec<RawFd>,
}

impl Engine for Psync {
    #[inline]
    fn push(&mut self, io: Io) -> Push {
        Push::Done(Done { io, result: transfer(&self.fds, &io) })
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn reap(&mut self, _done: &mut Vec<Done>, _at_least: usize) -> Result<(), EngineError> {
        Ok(())
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn synchronous(&self) -> bool {
        true
    }
}

/// The descriptors alone, so that the hot path walks a dense array.
pub(super) fn fds(files: &[EngineFile]) -> Vec<RawFd> {
    files.iter().map(|file| file.fd).collect()
}

/// One pread(2) or pwrite(2), taken up again after a signal. Blocks; any thread.
#[inline]
pub(super) fn transfer(fds: &[RawFd], io: &Io) -> Result<u32, IoFault> {
    let Some(&fd) = fds.get(io.file as usize) else {
        return Err(IoFault::Errno(libc::EBADF));
    };
    let (len, at) = (io.span.len() as usize, io.offset.cast_signed());
    loop {
        let moved = match io.op {
            // SAFETY: the span is `len` bytes that its maker keeps for us until the I/O is back;
            // a bad descriptor or an offset above i64::MAX (negative here) is an errno.
            Op::Read => unsafe { libc::pread64(fd, io.span.as_ptr().cast(), len, at) },
            // SAFETY: as above, and the kernel only reads the span.
            Op::Write => unsafe { libc::pwrite64(fd, io.span.as_ptr().cast(), len, at) },
        };
        if moved >= 0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the span's length, which is a u32"
            )]
            return Ok(moved as u32);
        }
        match errno() {
            libc::EINTR => {}
            errno => return Err(IoFault::Errno(errno)),
        }
    }
}

/// errno(3) of this thread's last failed call.
pub(super) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
