//! The file's side of a transfer in a stream.

use gpuio_io::engine::Op;

use super::order::{Order, Way};
use super::rounds::Part;
use crate::fault::Failed;
use crate::file::{Got, Spot};
use crate::job::Asked;
use crate::moved::Route;

impl Order {
    /// Moves a piece, and notes what came of it.
    pub(super) fn serve(&self, part: Part) {
        match self.way {
            Way::Gather { .. } => {
                let (first, _) = self.area.part(self.part(part.round), self.part_len);
                let skip = self.skip(part.offset - part.start);
                let in_round = part.start - part.round * self.part_len;
                let by = in_round + skip.unwrap_or(0);
                // Inside the part, so below its length.
                let at = first.wrapping_add(usize::try_from(by).unwrap_or(0));
                // SAFETY: the part has room for the round's bytes, and for a page before and
                // behind; whoever has the piece is the only one to use its bytes, the stream not
                // until the round is told of.
                let moved = unsafe { self.file_side(at, skip.is_some(), part) };
                self.note(part, moved, |route, bytes| route.by_kernel = bytes);
            }
            Way::Host => {
                let address = part.address + part.start;
                // Addresses have 64 bits.
                let at = usize::try_from(address).unwrap_or(0);
                let at = std::ptr::with_exposed_provenance_mut::<u8>(at);
                // SAFETY: the caller of the transfer promises that memory until the stream has
                // passed, and nobody else has this piece of it.
                let moved = unsafe { self.file_side(at, false, part) };
                self.note(part, moved, |route, bytes| route.by_host = bytes);
            }
            Way::Call(place) => {
                let (op, file) = (self.op, self.file.clone());
                let Part { address, len, offset, .. } = part;
                let asked = Asked { op, file, place, address, len: len as u64, offset };
                match self.state.run(asked) {
                    Ok(moved) => {
                        self.progress.ends(moved.bytes as u64);
                        self.progress.count(&moved.route);
                    }
                    Err(fault) => self.progress.fail(0, fault),
                }
            }
        }
    }

    /// # Safety
    ///
    /// As [`crate::file::Inner::read`] and `write`.
    unsafe fn file_side(&self, at: *mut u8, slack: bool, part: Part) -> Result<Got, Failed> {
        let Part { len, offset, large, .. } = part;
        match self.op {
            // SAFETY: the caller's promise.
            Op::Read => unsafe { self.file.0.read(Spot { at, slack }, len, offset, large) },
            // SAFETY: the caller's promise.
            Op::Write => unsafe { self.file.0.write(at, len, offset) },
        }
    }

    fn note(&self, part: Part, moved: Result<Got, Failed>, memory: impl FnOnce(&mut Route, u64)) {
        match moved {
            Ok(got) => {
                let mut route = Route::default();
                route.file(got);
                memory(&mut route, got.bytes() as u64);
                self.progress.count(&route);
                if got.bytes() < part.len {
                    self.progress.ends(part.start + got.bytes() as u64);
                }
            }
            Err(failed) => self.progress.fail(part.start, self.file.0.fault(failed)),
        }
    }
}
