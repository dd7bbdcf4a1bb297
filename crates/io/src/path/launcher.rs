//! The kernel that copies many blocks, and the lists that it reads: what `gather` and `mapped`
//! launch.

use gpuio_gpu::most_pieces;
use gpuio_gpu::{Context, DevPtr, GatherKernel, GpuError, Piece, PieceList, Pinned, Stream};

/// The shortest piece that [`GatherKernel::piece_len`] asks for: what lists must have space for.
const PIECE_LEAST: u64 = 4 << 10;

/// A block to copy: from, to, bytes.
pub(super) type Copied = (DevPtr, DevPtr, u64);

/// The kernel, and lists that are written by the host, one for each launch in flight.
pub(super) struct Launcher {
    kernel: GatherKernel,
    lists: Pinned,
    /// Pieces that a list has space for.
    room: usize,
}

impl Launcher {
    /// Loads the kernel and makes space for `lists` lists of `blocks` blocks of at most `longest`
    /// bytes.
    ///
    /// # Errors
    /// The driver's refusal.
    pub(super) fn new(
        context: &Context,
        (lists, blocks): (u32, u32),
        longest: u64,
    ) -> Result<Launcher, GpuError> {
        let each = most_pieces(longest, PIECE_LEAST);
        let room = usize::try_from(each * u64::from(blocks)).unwrap_or(usize::MAX);
        let bytes = room.saturating_mul(size_of::<Piece>()).saturating_mul(lists as usize);
        let lists = Pinned::alloc(context, bytes)?;
        let kernel = GatherKernel::load(context)?;
        Ok(Launcher { kernel, lists, room })
    }

    /// Bytes of host memory that the lists take.
    pub(super) fn bytes(&self) -> u64 {
        self.lists.len() as u64
    }

    /// The longest piece to cut blocks into, bytes, where a list has `total` bytes.
    pub(super) fn piece_max(&self, total: u64) -> u64 {
        self.kernel.piece_len(total)
    }

    /// Launches the kernel on a list of [`Launcher::list`]. The longest piece has `longest` bytes.
    ///
    /// # Errors
    /// The driver's refusal: nothing is launched then.
    ///
    /// # Safety
    /// As [`Launcher::launch`], for what the list names.
    pub(super) unsafe fn launch_list(
        &self,
        stream: &Stream,
        list: &PieceList,
        longest: u64,
    ) -> Result<(), GpuError> {
        let shape = self.kernel.shape(list.count(), longest);
        // SAFETY: the list was written and is this launch's alone until the stream has passed it;
        // the rest is the caller's promise.
        unsafe { self.kernel.launch(stream, list.ptr(), list.count(), shape) }
    }

    /// Writes list `number` and launches the kernel on it.
    ///
    /// # Errors
    /// The driver's refusal: nothing is launched then.
    ///
    /// # Safety
    /// Until the stream has passed the launch nothing else uses list `number`, `self` and both
    /// sides of each block live, nothing writes what is read or uses what is written.
    /// Whole words of 16 bytes around what is read live too.
    pub(super) unsafe fn launch(
        &self,
        stream: &Stream,
        number: u32,
        blocks: impl Iterator<Item = Copied> + Clone,
    ) -> Result<(), GpuError> {
        let lens = blocks.clone().map(|(_, _, len)| len);
        let (total, longest) = lens.fold((0, 0), |(sum, most), len| (sum + len, len.max(most)));
        let piece_max = self.kernel.piece_len(total);
        let mut list = self.list(number);
        for (from, to, len) in blocks {
            list.push(from, to, len, piece_max);
        }
        // SAFETY: the list has just been written; the rest is the caller's promise.
        unsafe { self.launch_list(stream, &list, longest.min(piece_max)) }
    }

    /// List `number`, empty. It is idle: no launch reads it, and no other value writes it.
    pub(super) fn list(&self, number: u32) -> PieceList {
        let (first, bytes) = (number as usize * self.room, size_of::<Piece>());
        assert!((first + self.room) * bytes <= self.lists.len(), "list {number} is not there");
        let at = self.lists.as_ptr().as_ptr().cast::<Piece>().wrapping_add(first);
        let ptr = self.lists.ptr().byte_add((first * bytes) as u64);
        // SAFETY: inside the lists by the assertion, which begin at a page, and this launch's
        // alone.
        unsafe { PieceList::new(at, ptr, self.room) }
    }
}
