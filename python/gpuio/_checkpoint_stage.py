"""Staged pages: memory that GPUs copy into, and from which the drain writes files."""

import collections
import ctypes
import fcntl
import functools
import mmap
import os
import resource
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Callable, Deque, Iterable, Iterator, List, Optional, Set, Tuple, TypeVar

from ._checkpoint_drain import ended, results, started_pool
from ._library import GpuioError, library

_CHUNK = 256 << 20
_POPULATE = 32 << 20
_HUGEPAGE, _DONTFORK, _POPULATE_WRITE = 14, 10, 23
# Copies of host memory are cut, so that several threads make them. A multiple of 8: of a digest's
# words.
_HOST_PIECE = 32 << 20
# Calls of a pool that are queued: each thread has one, and more to go on with.
_AHEAD = 32
_Key = TypeVar("_Key")


def threads() -> int:
    """Processors of this process, eight at most."""
    return min(len(os.sched_getaffinity(0)), 8)


def default_limit() -> int:
    """Half of the memory that is free, here and below the limits of the control groups."""
    free = 4 << 30
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) << 10
    return min([free, *_free_in_groups("/proc/self/cgroup", "/sys/fs/cgroup")]) // 2


def _free_in_groups(own: str, mounted: str) -> List[int]:
    """What the control group of this process, and each one above it, has left (cgroups(7)). Pages
    of files count as free: the kernel takes them back."""
    try:
        with open(own, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []  # A kernel without control groups.
    found = []
    for _, controllers, path in lines:
        first = "memory" in controllers.split(",")
        if controllers and not first:
            continue
        kinds = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                 "total_active_file") if first else (
            "memory.max", "memory.current", "inactive_file", "active_file")
        place = os.path.join(mounted, "memory") if first else mounted
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):
            group = os.path.join(place, *parts[:depth])
            try:
                most, used = (int(_text(group, name)) for name in kinds[:2])
                counts = dict(line.split() for line in _text(group, "memory.stat").splitlines())
                found.append(max(most - used + sum(int(counts[name]) for name in kinds[2:]), 0))
            except (OSError, ValueError, KeyError):
                pass  # It has no limit ("max"), or isn't shown in this container.
    return found


def _text(group: str, name: str) -> str:
    with open(os.path.join(group, name), encoding="ascii") as file:
        return file.read()


class Stage:
    """One memfd. Ranges of it are taken and given back; its pages stay, and stay locked.

    Any thread may call it.
    """

    def __init__(self, limit: int) -> None:
        most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        # Staged memory is a file, for which the limit of a file's size holds, too (setrlimit(2)).
        self.limited = most != resource.RLIM_INFINITY and most < limit
        limit = min(limit, most) if self.limited else limit
        self.length = max(limit // mmap.PAGESIZE, 1) * mmap.PAGESIZE
        self.fd = os.memfd_create("gpuio-checkpoint", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.length)
        # Its length stays, whoever finds it: a page that is cut off would be lost from a save.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        self.map = mmap.mmap(self.fd, self.length, mmap.MAP_SHARED)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        # The first needs the kernel's permission for memory files, and is a hint.
        for advice in (_HUGEPAGE, _DONTFORK):
            self._libc.madvise(self.address, self.length, advice)
        self.pool = started_pool(threads(), "gpuio-checkpoint")
        self._free: List[Tuple[int, int]] = [(0, self.length)]
        self._changed = threading.Condition()
        self._populated: Set[int] = set()
        self._locked: Set[int] = set()
        self._readying = threading.Lock()

    def take(self, nbytes: int, check: Callable[[], None]) -> int:
        """A range of whole pages; waits until there is one. ``check`` raises what ends the wait."""
        wanted = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        if wanted > self.length:
            remedy = (
                "raise the limit of a file's size (ulimit -f), which holds for it"
                if self.limited else "give a larger limit to gpuio.checkpoint.configure"
            )
            raise GpuioError(
                f"a file of the checkpoint, {nbytes} bytes (a tensor is never split), does not "
                f"fit into the {self.length} bytes of staged memory: {remedy}"
            )
        with self._changed:
            while True:
                for nth, (at, length) in enumerate(self._free):
                    if length >= wanted:
                        self._free[nth : nth + 1] = (
                            [(at + wanted, length - wanted)] if length > wanted else []
                        )
                        return at
                check()
                self._changed.wait(1)

    def give(self, at: int, nbytes: int) -> None:
        """Gives a range back: nothing reads it any more."""
        length = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        with self._changed:
            merged: List[Tuple[int, int]] = []
            for start, size in sorted([*self._free, (at, length)]):
                if merged and sum(merged[-1]) == start:
                    merged[-1] = (merged[-1][0], merged[-1][1] + size)
                else:
                    merged.append((start, size))
            self._free = merged
            self._changed.notify_all()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def ready(self, at: int, nbytes: int, device: int) -> None:
        """Allocates the pages of a range, and locks them for GPUs unless ``device`` is -1."""
        with self._readying:
            chunks = range(at // _CHUNK, -(-(at + nbytes) // _CHUNK))
            fresh = [chunk for chunk in chunks if chunk not in self._populated]
            pieces = [
                (start, min(start + _POPULATE, self._end(chunk)) - start)
                for chunk in fresh
                for start in range(chunk * _CHUNK, self._end(chunk), _POPULATE)
            ]
            results(self.pool.submit(self._populate, *piece) for piece in pieces)
            self._populated.update(fresh)
            for chunk in chunks:
                if device >= 0 and chunk not in self._locked:
                    start = chunk * _CHUNK
                    library().pages_lock(device, self.address + start, self._end(chunk) - start)
                    self._locked.add(chunk)

    def _end(self, chunk: int) -> int:
        return min((chunk + 1) * _CHUNK, self.length)

    def _populate(self, at: int, length: int) -> None:
        if self._libc.madvise(self.address + at, length, _POPULATE_WRITE) == 0:
            return
        # A kernel before 5.14, or no memory, which this says.
        try:
            os.posix_fallocate(self.fd, at, length)
        except OSError as error:
            raise GpuioError(
                error.errno, f"no memory for staged pages of checkpoints: {error.strerror}"
            ) from error

    def pieces(self, at: int, nbytes: int) -> List[Tuple[int, int]]:
        """A range, cut where pages are locked apart: first byte and length of each part."""
        cuts, here, end = [], at, at + nbytes
        while here < end:
            until = min((here // _CHUNK + 1) * _CHUNK, end)
            cuts.append((here, until - here))
            here = until
        return cuts

    def copy_host(self, address: int, nbytes: int, at: int) -> int:
        """Copies host memory into the pages by several threads; the digest of the bytes."""
        def one(start: int) -> int:
            length = min(_HOST_PIECE, nbytes - start)
            to = self.address + at + start
            copies = [(address + start, to, length)]
            return library().move_out(-1, copies, [(to, length, start // 8)])[0]

        starts = range(0, nbytes, _HOST_PIECE)
        return sum(results(self.pool.submit(one, start) for start in starts)) % 2**64


def digest_parts(
    read: Callable[[int, memoryview], None], nbytes: int, offset: int
) -> Iterator[Callable[[], int]]:
    """Calls that take the digest of bytes that ``read`` brings; their sum is that of all."""
    def one(start: int) -> int:
        length = min(_HOST_PIECE, nbytes - start)
        with mmap.mmap(-1, length) as buffer:
            with memoryview(buffer) as view:
                read(offset + start, view)
            place = ctypes.c_char.from_buffer(buffer)
            digest = library().move_out(-1, [], [(ctypes.addressof(place), length, start // 8)])[0]
            del place
        return digest

    for start in range(0, nbytes, _HOST_PIECE):
        yield functools.partial(one, start)


def in_turn(
    pool: ThreadPoolExecutor, work: Iterable[Tuple[_Key, Callable[[], int]]]
) -> Iterator[Tuple[_Key, "Future[int]"]]:
    """Each call's future in order. A few are under way at a time: a file may claim any number of
    bytes. None is when this ends."""
    under_way: Deque[Tuple[_Key, "Future[int]"]] = collections.deque()
    try:
        for key, call in work:
            under_way.append((key, pool.submit(call)))
            if len(under_way) == _AHEAD:
                yield under_way[0]
                under_way.popleft()
        while under_way:
            yield under_way[0]
            under_way.popleft()
    finally:
        for _, future in under_way:
            future.cancel()
        ended(future for _, future in under_way)


_pool: Optional[ThreadPoolExecutor] = None


def _forget() -> None:
    global _pool
    _pool = None


# A child of fork has the pool, and none of its threads.
os.register_at_fork(after_in_child=_forget)


def shared_pool() -> ThreadPoolExecutor:
    """Threads for reads and digests of checkpoints that are verified."""
    global _pool
    if _pool is None:
        _pool = started_pool(threads(), "gpuio-verify")
    return _pool
