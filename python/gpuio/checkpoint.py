"""Checkpoints that cost a training loop the copy out of the GPU, and no more.

``save(state, directory)`` returns when the bytes have left the GPU, in pages of memory that are
allocated once. A process of its own, the drain, writes them to files of safetensors. A directory of
that name appears when all is on the disk, and not before. docs/checkpoint.md has the page.
"""

import atexit
import base64
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union, cast

from . import _checkpoint_drain
from ._checkpoint_drain import MANIFEST, OTHERS_S, framed, give_up, make_directories, results
from ._checkpoint_format import (
    DCP_METADATA,
    PAGE,
    WRITER,
    File,
    Flat,
    Leaf,
    check_headers,
    check_read_back,
    described,
    index,
    laid_out,
    rebuilt,
)
from ._checkpoint_into import placed, refilled, sharing
from ._checkpoint_manifest import (
    OWNER,
    DamagedError,
    Users,
    checked,
    is_of_this_host,
    open_regular,
    own_draft,
    read_manifest,
    unread,
)
from ._checkpoint_stage import Stage, default_limit, digest_parts, in_turn, shared_pool
from ._environment import variable
from ._library import PATH, GpuioError, check, few, library, needed, whole
from ._memory import Device, device_number
from ._safetensors import Loaded, safetensors

PathLike = Union[str, "os.PathLike[str]"]

__all__ = [
    "DamagedError", "Handle", "PassedOverWarning", "Reader", "Verified", "Writer", "clean",
    "configure", "latest", "load", "prepare", "save", "verify", "wait",
]

# Bytes of a file: so much is free again when one is written.
_FILE_BYTES = 2 << 30
_DRAFT = ".gpuio-draft-"


class Handle:
    """A checkpoint on its way to the disk."""

    def __init__(self, job: "_Job") -> None:
        self.directory = job.directory
        self.nbytes = 0
        """Of its files."""
        self.stall = 0.0
        """Seconds that ``save`` took."""
        self.drained: Optional[float] = None
        """Seconds from the first byte written until all was on the disk; None before."""
        self.direct: Optional[bool] = None
        """Whether it was written past the page cache (``O_DIRECT``); None before."""
        self.written = 0
        """Bytes written until now."""
        self._draft, self._world, self._rank = job.draft, job.world, job.rank
        self._survive, self._sent, self._agreed = job.survive, False, job.world == 1
        self._done, self._reported = threading.Event(), False
        self._error: Optional[GpuioError] = None

    @property
    def done(self) -> bool:
        """Whether it is complete, or has failed."""
        return self._done.is_set()

    def wait(self, timeout: Optional[float] = None) -> "Handle":
        """Waits until it is complete and on the disk. Raises what went wrong, or TimeoutError."""
        if not self._done.wait(timeout):
            raise TimeoutError(f"{self.directory} was not complete after {timeout} s")
        if self._error is not None:
            self._reported = True
            raise self._error
        return self

    def _fail(self, code: int, text: str) -> None:
        if not self._done.is_set():
            there = "Something" if os.path.lexists(self.directory) else "Nothing"
            words = (
                f"the checkpoint {self.directory} was not written: {text}. {there} of that name "
                "exists; older checkpoints are as they were"
            )
            self._error = GpuioError(code, words)
            self._done.set()

    def __repr__(self) -> str:
        how = "failed" if self._error else "complete" if self.done else f"{self.written} written"
        return f"<gpuio.checkpoint.Handle {self.directory}: {self.nbytes} bytes, {how}>"


class _Drain:
    """The process that writes, and the thread that reads its messages."""

    def __init__(self, stage: Stage, direct: bool) -> None:
        ours, theirs = socket.socketpair()
        self.stage, self.link = stage, ours
        self.handles: Dict[int, Handle] = {}
        self.held: Dict[Tuple[int, int], int] = {}
        self.sending, self.dead = threading.Lock(), False
        pages = variable("GPUIO_PAGES") or ""
        pages = pages if os.path.isabs(pages) else "/dev/shm"
        words = (theirs.fileno(), stage.fd, stage.length, os.getpid(), int(direct), pages)
        if not sys.executable:
            raise GpuioError(errno.ENOENT, "this Python has no program (sys.executable), by "
                             "which the drain could be started")
        # Of a session of its own: Ctrl-C is for the trainer. It holds no output of the trainer's
        # open, for who reads that waits for its end.
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", _checkpoint_drain.__file__, *map(str, words)],
            pass_fds=(theirs.fileno(), stage.fd), start_new_session=True, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self.listener = threading.Thread(target=self._listen, name="gpuio-drain", daemon=True)
        self.listener.start()

    def say(self, **message: Any) -> None:
        try:
            with self.sending:
                self.link.sendall(framed(message))
        except OSError as error:
            words = f"the drain process has ended: {error.strerror}"
            raise GpuioError(error.errno, words) from error

    def _listen(self) -> None:
        try:
            with self.link.makefile("rb") as lines:
                for line in lines:
                    if not line.endswith(b"\n"):
                        break
                    self._heard(json.loads(line))
        except (OSError, ValueError, KeyError):
            # It would go on, and its pages could not be used again.
            self.process.kill()
        self.dead = True
        code = self.process.wait()
        for handle in list(self.handles.values()):
            if not handle.done:
                give_up(handle.directory, handle._draft, handle._rank, handle._world)
                handle._fail(errno.EPIPE, f"the drain process ended (code {code})")
        while self.held:
            (at, _), nbytes = self.held.popitem()
            self.stage.give(at, nbytes)
        self.stage.wake()

    def _heard(self, message: Dict[str, Any]) -> None:
        what = message["op"]
        if what == "deaf":
            # The next save has a new one.
            self.dead = True
            return
        handle = self.handles[message["id"]]
        if what == "freed":
            if self.held.pop((message["at"], message["id"]), None) is not None:
                self.stage.give(message["at"], message["bytes"])
        elif what == "agreed":
            handle._agreed = True
        elif what == "wrote":
            handle.written = message["bytes"]
        elif what == "failed":
            handle._fail(message["errno"], message["text"])
            self.stage.wake()
        elif what == "done":
            handle.written, handle.drained = message["bytes"], message["seconds"]
            handle.direct = message["direct"]
            del self.handles[message["id"]]
            handle._done.set()


class _Saver:
    """Staged pages and their drain: one of each in a process."""

    def __init__(self) -> None:
        self.limit: Optional[int] = None
        self.file_bytes, self.direct = _FILE_BYTES, True
        self.stage: Optional[Stage] = None
        self.drain: Optional[_Drain] = None
        self.saving, self.count, self.owner = threading.RLock(), 0, 0
        self.handles: List[Handle] = []

    def staged(self) -> Stage:
        if self.stage is not None and self.owner != os.getpid():
            raise GpuioError(errno.EPERM, "this is a child of the process that saves checkpoints: "
                             "save in one that was not made by fork")
        if self.stage is None:
            self.stage, self.owner = Stage(self.limit or default_limit()), os.getpid()
        return self.stage

    def drained(self) -> _Drain:
        if self.drain is None or self.drain.dead:
            if self.drain is not None:
                self.drain.link.close()
            self.drain = _Drain(self.staged(), self.direct)
        return self.drain

    def raise_earlier(self) -> None:
        """An error of an earlier save that was not raised yet."""
        kept = []
        for handle in self.handles:
            if not handle.done:
                kept.append(handle)
            elif handle._error is not None and not handle._reported:
                handle._reported = True
                self.handles.remove(handle)
                raise handle._error
        self.handles = kept

    def save(self, job: "_Job") -> Handle:
        began = time.monotonic()
        with self.saving:
            self.raise_earlier()
            stage, drain = self.staged(), self.drained()
            files = laid_out(job.leaves, min(self.file_bytes, stage.length // 2), job.prefix)
            check_headers(files)
            make_directories(os.path.dirname(job.directory))
            if os.path.lexists(job.directory):
                raise FileExistsError(errno.EEXIST, "there is something of that name already: a "
                                      "checkpoint replaces nothing", job.directory)
            handle = Handle(job)
            handle.nbytes = sum(file.nbytes for file in files)
            # All at once: ranges that the drain gives back during the first save would do for this
            # one, and the next save, which has all of its bytes at once, would allocate the rest.
            self.ready(files, 1)
            self.count += 1
            number = self.count
            drain.handles[number] = handle
            self.handles.append(handle)
            try:
                drain.say(op="save", id=number, directory=job.directory, draft=job.draft,
                          rank=job.rank, world=job.world, survive=job.survive,
                          bytes=handle.nbytes)
                about: Dict[str, Any] = {}
                tensors: Dict[str, Any] = {}
                for file in files:
                    if handle._error is not None:
                        raise handle._error
                    digests = self._put(drain, number, handle, file)
                    about[file.name], more = described(file, digests)
                    tensors.update(more)
                job.files = files
                extras = {}
                listed = index(files) if job.world == 1 else None
                if listed is not None:
                    extras["model.safetensors.index.json"] = listed
                one = {"structure": job.structure, "files": about, "tensors": tensors}
                job.finish = lambda more: self._end(drain, number, handle, one, {**extras, **more})
                if not job.held:
                    job.finish({})
            except BaseException as error:
                try:
                    drain.say(op="abort", id=number)
                except GpuioError:
                    pass
                why = error.strerror if isinstance(error, GpuioError) else None
                handle._fail(getattr(error, "errno", None) or errno.EIO, why or str(error))
                handle._reported = True
                named = handle._error
                if isinstance(error, GpuioError) and named is not None and named is not error:
                    # It has the checkpoint's name, and says whether one is there.
                    raise named from error
                raise
            handle.stall = time.monotonic() - began
            return handle

    def ready(self, files: List[File], saves: int) -> None:
        """Pages for so many saves at once."""
        stage = self.staged()
        nbytes = saves * sum(-(-file.nbytes // PAGE) * PAGE for file in files)
        gpus = (place.leaf.device for file in files for place in file.places)
        stage.ready(0, min(nbytes, stage.length), max(gpus, default=-1))

    def _end(
        self, drain: _Drain, number: int, handle: Handle, one: Dict[str, Any],
        extras: Dict[str, bytes],
    ) -> None:
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in extras.items()}
        # The drain knows the number.
        manifest = {"version": 1, "number": 0, "created": time.time(), "ranks": [one],
                    "extras": sums}
        shown = {name: base64.b64encode(content).decode() for name, content in extras.items()}
        drain.say(op="end", id=number, manifest=manifest, extras=shown)
        handle._sent = True

    def _put(self, drain: _Drain, number: int, handle: Handle, file: File) -> Dict[str, int]:
        """A file into staged pages, and to the drain; the digests of its tensors."""
        stage = drain.stage

        def check() -> None:
            if handle._error is not None:
                raise handle._error
            if drain.dead:
                raise GpuioError(errno.EPIPE, "the drain process has ended")

        at, sent = stage.take(file.nbytes, check), False
        try:
            gpus: Dict[int, List[Any]] = {}
            for place in file.places:
                gpus.setdefault(place.leaf.device, []).append(place)
            host = gpus.pop(-1, [])
            stage.ready(at, file.nbytes, min(gpus, default=-1))
            stage.map[at : at + len(file.header)] = file.header
            digests: Dict[str, int] = {}
            for device, places in gpus.items():
                copies, asked = [], []
                for one, offset in places:
                    for here, length in stage.pieces(at + offset, one.nbytes):
                        source = one.address + here - at - offset
                        copies.append((source, stage.address + here, length))
                    asked.append((one.address, one.nbytes, 0))
                sums = library().move_out(device, copies, asked)
                digests.update((place.leaf.name, sum_) for place, sum_ in zip(places, sums))
            for one, offset in host:
                digests[one.name] = stage.copy_host(one.address, one.nbytes, at + offset)
            sent = True
            drain.held[(at, number)] = file.nbytes
            drain.say(op="file", id=number, name=file.name, at=at, bytes=file.nbytes)
        except BaseException:
            # Where the drain has ended, its listener may have given it back.
            if not sent or drain.held.pop((at, number), None) is not None:
                stage.give(at, file.nbytes)
            raise
        return digests

    def close(self) -> None:
        """At the end of the process: those that may survive go on without it."""
        drain = self.drain
        if drain is None or self.owner != os.getpid():
            return
        for handle in list(drain.handles.values()):
            # Ranks agree while their processes live.
            until = time.monotonic() + OTHERS_S
            while handle._sent and not handle.done and (
                not handle._survive or not handle._agreed and time.monotonic() < until
            ):
                handle._done.wait(0.05)
        for handle in self.handles:
            if handle._error is not None and not handle._reported:
                print(f"gpuio: {handle._error}", file=sys.stderr)
                sys.stderr = _Fails(sys.stderr)
        try:
            drain.link.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class _Fails:
    """A standard error whose last flush fails: Python then ends with exit code 120 (documentation of
    ``sys.exit``). Nothing else changes the code once functions of ``atexit`` are called."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def flush(self) -> None:
        self._file.flush()
        if sys.is_finalizing():
            raise OSError(errno.EIO, "a checkpoint was not written")


class _Job:
    """What is to be saved, and where."""

    def __init__(
        self, leaves: List[Leaf], structure: Any, directory: str, rank: int, world: int,
        token: str, survive: bool, held: bool = False,
    ) -> None:
        self.leaves, self.structure = leaves, structure
        self.directory = os.path.abspath(directory)
        above, name = os.path.split(self.directory)
        self.draft = os.path.join(above, f".{name}{_DRAFT}{token}")
        self.rank, self.world, self.survive, self.held = rank, world, survive, held
        self.prefix = "model" if world == 1 else f"rank-{rank:05}"
        self.files: List[File] = []
        self.finish: Callable[[Dict[str, bytes]], None] = lambda extras: None


_saver = _Saver()


atexit.register(lambda: _saver.close())


def __getattr__(name: str) -> Any:
    # They derive from classes of PyTorch.
    if name in ("Reader", "Writer"):
        needed("torch", f"gpuio.checkpoint.{name}")
        from . import _checkpoint_dcp

        return getattr(_checkpoint_dcp, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def configure(
    *, limit: Optional[int] = None, file_bytes: Optional[int] = None, direct: Optional[bool] = None
) -> None:
    """Before the first save: bytes of staged memory at most (default: half of what is free), bytes
    of a file, and whether files are written past the page cache (default: where that works).

    A save of more bytes than the limit works too, at the rate of the disk.
    """
    for what, value in {"limit": limit, "file_bytes": file_bytes}.items():
        if value is not None:
            whole(value, what)
    check((bool,), optional=True, direct=direct)
    if _saver.stage is not None and limit is not None:
        raise ValueError("staged memory is in use already: configure it before the first save")
    _saver.limit = limit if limit is not None else _saver.limit
    _saver.file_bytes = file_bytes if file_bytes is not None else _saver.file_bytes
    _saver.direct = direct if direct is not None else _saver.direct


def prepare(state: Any, saves: int = 1) -> None:
    """Allocates and locks staged pages for a state, and starts the drain, before the first save.

    The first save does it otherwise, at some GiB/s. ``saves``: for so many at once, where one may
    begin before the drain has written the one before.
    """
    whole(saves, "saves")
    with _saver.saving:
        leaves = list(Flat(state).leaves.values())
        most = min(_saver.file_bytes, _saver.staged().length // 2)
        _saver.ready(laid_out(leaves, most, "model"), saves)
        for device in {one.device for one in leaves}:
            library().move_out(device, [], [])
        _saver.drained()


def save(
    state: Any, directory: PathLike, *, survive: bool = False,
    rank: int = 0, world_size: int = 1, token: Optional[str] = None,
) -> Handle:
    """Saves a state, and returns when its tensors may change again.

    ``state`` has tensors (PyTorch, CuPy, NumPy, others by DLPack), numbers, text, None, and lists,
    tuples and dictionaries of these. ``directory`` is new: one for each step. It appears when all
    of it is on the disk; ``Handle.wait`` waits for that. Errors of an earlier save are raised here,
    unless ``wait`` has. Waits while the staged pages are full.

    With ``survive`` the drain ends its work after this process has ended, also by a signal.
    Otherwise a process that exits waits for it, and one that is killed leaves no such directory.

    Several ranks give the same directory and a ``token`` of theirs that no earlier save had, such
    as random text that rank 0 sends to the others. With ``survive`` all must have begun.
    """
    check(PATH, directory=directory)
    check((str,), optional=True, token=token)
    check((bool,), survive=survive)
    if not 0 <= whole(rank, "rank") < whole(world_size, "world_size"):
        raise ValueError(f"rank {rank} is none of {world_size}")
    if world_size > 1 and token is None:
        raise ValueError("several ranks need a token: the same text for all, new for each save")
    flat = Flat(state)
    check_read_back(flat.structure)
    leaves = list(flat.leaves.values())
    # Nothing is shared by one rank: a draft of its own, whatever others do with the token.
    token = secrets.token_hex(8) if token is None or world_size == 1 else token
    directory = os.fspath(directory)
    return _saver.save(_Job(leaves, flat.structure, directory, rank, world_size, token, survive))


def wait() -> None:
    """Waits for all checkpoints of this process. Raises the first error that was not raised yet."""
    for handle in list(_saver.handles):
        handle._done.wait()
    _saver.raise_earlier()


class Verified(NamedTuple):
    """What was checked."""

    tensors: int
    nbytes: int


def _damage(name: str, about: Dict[str, Any], found: int) -> Dict[str, str]:
    if f"{found % 2**64:016x}" == about["digest"]:
        return {}
    return {name: f"its bytes in {about['file']} are not those that were saved"}


def verify(directory: PathLike) -> Verified:
    """Reads a checkpoint and compares each byte's digest. `DamagedError` names the tensors."""
    check(PATH, directory=directory)
    directory = os.path.abspath(os.fspath(directory))
    manifest = read_manifest(directory)
    return _verified(directory, manifest, checked(directory, manifest))


def _verified(directory: str, manifest: Dict[str, Any], damaged: Dict[str, str]) -> Verified:
    nbytes = count = 0
    for rank in manifest["ranks"]:
        with contextlib.ExitStack() as open_files:
            files: Dict[str, int] = {}
            for name in rank["files"]:
                if name not in damaged:
                    files[name] = open_regular(os.path.join(directory, name))
                    open_files.callback(os.close, files[name])
            tensors = {name: one for name, one in rank["tensors"].items() if one["file"] in files}
            sums = dict.fromkeys(tensors, 0)
            broken: Dict[str, str] = {}
            parts = (
                (name, part) for name, one in tensors.items()
                for part in digest_parts(_reader(files[one["file"]]), one["bytes"], one["offset"])
            )
            with contextlib.closing(in_turn(shared_pool(), parts)) as futures:
                for name, future in futures:
                    try:
                        sums[name] += future.result()
                    except OSError as error:
                        file = tensors[name]["file"]
                        broken[name] = f"its bytes in {file} can't be read: {unread(error)}"
            for name, one in tensors.items():
                damaged.update(
                    {name: broken[name]} if name in broken else _damage(name, one, sums[name])
                )
                nbytes += one["bytes"]
            count += len(tensors)
    if damaged:
        raise DamagedError(directory, damaged)
    return Verified(count, nbytes)


def _reader(fd: int) -> Callable[[int, memoryview], None]:
    def read(offset: int, view: memoryview) -> None:
        done = 0
        while done < len(view):
            count = os.preadv(fd, [view[done:]], offset + done)
            if count == 0:
                raise OSError(errno.EIO, "the file became shorter")
            done += count

    return read


def load(
    directory: PathLike, device: Device = "cpu", *, into: Any = None, rank: int = 0,
    verify: bool = True, as_: Optional[str] = None,
) -> Any:
    """The state that was saved, its tensors on a device, or in the tensors of ``into``.

    ``into`` is a state of the same structure, types and shapes, whose tensors are filled, each from
    the one in its place; a tensor that has another name there too may lack this one. Numbers, text
    and None take theirs in its dictionaries and lists once all tensors are right. ``device`` is not
    used then. Otherwise tensors are PyTorch's where it is imported, else NumPy's; ``as_`` is
    ``"torch"``, ``"numpy"`` or ``"gpuio"``. Digests are compared where the tensors are, after the
    bytes have come: `DamagedError` names those that differ.
    """
    check(PATH, directory=directory)
    check((bool,), verify=verify)
    check((str,), optional=True, as_=as_)
    if as_ not in (None, "torch", "numpy", "gpuio"):
        raise ValueError(f'as_ is "torch", "numpy" or "gpuio", not {as_!r}')
    directory = os.path.abspath(os.fspath(directory))
    manifest = read_manifest(directory)
    if DCP_METADATA in manifest["extras"]:
        raise ValueError(
            f"{directory} was written by gpuio.checkpoint.Writer: "
            "torch.distributed.checkpoint.load with gpuio.checkpoint.Reader reads it"
        )
    if not 0 <= whole(rank, "rank") < len(manifest["ranks"]):
        raise ValueError(f"rank {rank} is none of the {len(manifest['ranks'])} of {directory}")
    one = manifest["ranks"][rank]
    damaged = checked(directory, {"ranks": [one], "extras": manifest["extras"]})
    if damaged:
        raise DamagedError(directory, damaged)
    if into is not None:
        return _filled(directory, one, into, verify)
    as_ = as_ or ("torch" if "torch" in sys.modules else "numpy")
    if as_ != "gpuio":
        needed(as_, f'gpuio.checkpoint.load(…, as_="{as_}")', 'as_="gpuio" needs none')
    number = device_number(device)
    tensors: Dict[str, Any] = {}
    asked: List[Tuple[str, int, int]] = []
    for name in one["files"]:
        loaded = safetensors(os.path.join(directory, name), device)
        for tensor in loaded:
            place = loaded[tensor]
            asked.append((tensor, place._share.address + place.offset, place.nbytes))
        tensors.update(_converted(loaded, as_))
    if verify:
        _compare(directory, one, number, asked)
    return rebuilt(one["structure"], tensors)


def _converted(loaded: Loaded, library: str) -> Mapping[str, Any]:
    if library == "gpuio":
        return loaded
    try:
        return cast(Dict[str, Any], getattr(loaded, library)())
    except (RuntimeError, TypeError) as error:
        # The caller has no ``loaded`` of which the text speaks.
        why = error.__cause__ or error
        each = 'as_="gpuio" gives gpuio\'s tensors t, each of which converts alone'
        raise type(error)(f"{why}; {each}") from None


def _compare(
    directory: str, one: Dict[str, Any], device: int, asked: List[Tuple[str, int, int]]
) -> None:
    """Digests of memory against the manifest."""
    if device >= 0:
        sums = library().move_out(device, [], [(at, nbytes, 0) for _, at, nbytes in asked])
    else:
        cut = 32 << 20
        parts = [
            (nth, (at + start, min(cut, nbytes - start), start // 8))
            for nth, (_, at, nbytes) in enumerate(asked) for start in range(0, nbytes, cut)
        ]
        sums = [0] * len(asked)
        one_part = library().move_out
        digests = results(shared_pool().submit(one_part, -1, [], [part]) for _, part in parts)
        for (nth, _), (digest,) in zip(parts, digests):
            sums[nth] += digest
    damaged: Dict[str, str] = {}
    for (name, _, _), found in zip(asked, sums):
        damaged.update(_damage(name, one["tensors"][name], found))
    if damaged:
        raise DamagedError(directory, damaged)


def _filled(directory: str, one: Dict[str, Any], into: Any, verify: bool) -> Any:
    leaves = placed(directory, one["structure"], Flat(into, in_place=True))
    for name, have in leaves.items():
        about = one["tensors"][name]
        if (have.dtype, list(have.shape)) != (about["dtype"], about["shape"]):
            raise ValueError(f"tensor {name!r} is {have.dtype}{list(have.shape)}, and "
                             f"{about['dtype']}{about['shape']} in {directory}")
    # One would have the other's bytes, unless they are the same.
    shared = sharing(leaves.values())
    by_device: Dict[int, List[Tuple[str, int, int]]] = {}
    for name, have in leaves.items():
        asked = by_device.setdefault(have.device, [])
        if verify or name in shared:
            asked.append((name, have.address, have.nbytes))
    for device in by_device:
        if device >= 0:
            library().move_out(device, [], [])  # Waits for the program's work on the tensors.
    with contextlib.ExitStack() as open_files:
        files: Dict[str, int] = {}
        for name in one["files"]:
            files[name] = open_regular(os.path.join(directory, name))
            open_files.callback(os.close, files[name])
        for name, have in leaves.items():
            about = one["tensors"][name]
            read_stored(files[about["file"]], about, have.address, have.nbytes)
    for device, asked in by_device.items():
        try:
            _compare(directory, one, device, asked)
        except DamagedError as error:
            if shared.issuperset(error.damaged):
                raise ValueError(
                    f"tensors of into share memory, and {directory} has different bytes for them, "
                    f"or is damaged: {few(sorted(shared))}") from None
            words = "The tensors of into have its bytes already"
            raise DamagedError(directory, error.damaged, words) from None
    return refilled(into, one["structure"], {name: leaf.keeps for name, leaf in leaves.items()})


def read_stored(fd: int, about: Dict[str, Any], address: int, nbytes: int) -> None:
    """The bytes of a tensor of the manifest to memory of a GPU or the host, never more than that
    has."""
    if nbytes:
        moved = library().read(fd, about["offset"], address, nbytes)
        if moved.bytes != nbytes:
            raise OSError(errno.EIO, f"{about['file']} became shorter while it was read")


class PassedOverWarning(UserWarning):
    """A directory that `latest` does not take, or `clean` does not remove, and why."""


def latest(
    directory: PathLike, *, verify: bool = False, any_user: bool = False, missing_ok: bool = False
) -> Optional[str]:
    """The newest complete checkpoint directly below a directory; None if it has none.

    One whose manifest, or the size or header of a file, is damaged is passed over with a
    `PassedOverWarning`; with ``verify`` one with a damaged tensor too, for which all bytes of the
    newest are read. One that may not be read raises OSError, and one of a later format ValueError,
    so that no older one is taken for it. A directory that does not exist is a FileNotFoundError:
    its name may be wrong, and a training that begins anew would lose what it has. With
    ``missing_ok`` it has none, as before the first save, which makes it.

    Checkpoints of other users than this process's and root are passed over too, with one warning:
    whoever may write to the directory could put one there. ``any_user`` takes them.
    """
    check(PATH, directory=directory)
    check((bool,), verify=verify, any_user=any_user, missing_ok=missing_ok)
    found: List[Tuple[Tuple[int, float, str], Dict[str, Any]]] = []
    others: List[str] = []
    directory = os.fsdecode(directory)
    if missing_ok and not os.path.lexists(directory):
        return None
    users = None if any_user else Users(directory, 0)
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        # `lost+found` of a file system is root's alone.
        if _is_draft(name) or name == "lost+found" or not os.path.isdir(path):
            continue
        try:
            # A link is its maker's, too.
            if users and not all(look(path).st_uid in users for look in (os.lstat, os.stat)):
                if os.path.lexists(os.path.join(path, MANIFEST)):
                    others.append(name)
                continue
            manifest = read_manifest(path, users)
        except FileNotFoundError:
            if _has_own_file(path):
                _passed_over(DamagedError(path, {MANIFEST: "it is missing"}).found)
        except DamagedError as error:
            _passed_over(error.found)
        except OSError as error:
            _passed_over(DamagedError(path, {MANIFEST: unread(error)}).found)
        else:
            # A clock may have been set back between two saves, so their number is first.
            found.append(((manifest["number"], manifest["created"], path), manifest))
    if others:
        _passed_over(f"{few(sorted(others))} in {directory}, of other users. "
                     "latest(…, any_user=True) takes them")
    # Newest first, and no older one is looked at than needed.
    found.sort(key=lambda one: one[0], reverse=True)
    for (_, _, path), manifest in found:
        try:
            damaged = checked(path, manifest, users)
            if damaged:
                raise DamagedError(path, damaged)
            if verify:
                _verified(path, manifest, damaged)
        except DamagedError as error:
            _passed_over(error.found)
        else:
            return path
    return None


def _is_draft(name: str) -> bool:
    return name.startswith(".") and _DRAFT in name


def _has_own_file(path: str) -> bool:
    """Whether a directory has a file that a save of ours has written; not if it goes meanwhile."""
    try:
        for name in os.listdir(path):
            file = os.path.join(path, name)
            if name.endswith(".safetensors") and os.path.isfile(file):
                with open(open_regular(file), "rb") as opened:
                    # Behind the length of the header, as `laid_out` writes it.
                    if WRITER.encode() in opened.read(128):
                        return True
    except FileNotFoundError:
        pass
    return False


def _passed_over(what: object) -> None:
    warnings.warn(f"passed over: {what}", PassedOverWarning, stacklevel=3)


def clean(directory: PathLike, *, any_host: bool = False) -> List[str]:
    """Removes drafts directly below a directory that were left by killed processes, and returns
    their names. Drafts that a drain of this machine writes to stay.

    A draft on a file system that hosts share stays with a `PassedOverWarning`, too, unless one
    process of this host, since it booted, made it alone: another host may be writing it, and not
    all locks are seen here. ``any_host`` removes it, if nothing else is in the way: use it when no
    host saves there.

    Only a draft that a save of this user has made there is removed, by the file in it that says so.
    Any other, and one that is a whole checkpoint, stays with a `PassedOverWarning`: another user
    may have given a directory of yours such a name.
    """
    check(PATH, directory=directory)
    check((bool,), any_host=any_host)
    directory = os.fsdecode(directory)
    users, removed = Users(directory), []
    for name in os.listdir(directory):
        if not _is_draft(name):
            continue
        path = os.path.join(directory, name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            why = _why_left(path, fd, users, any_host)
        except OSError:
            continue  # A drain writes it.
        finally:
            os.close(fd)
        if why is None:
            removed.append(path)
        else:
            _passed_over(f"{path}: {why}")
    return removed


def _why_left(path: str, draft: int, users: Users, any_host: bool) -> Optional[str]:
    """Removes a draft, or says why not. Files go through its descriptor, for others may give its
    name to another directory meanwhile."""
    names = os.listdir(draft)
    if os.fstat(draft).st_uid not in users:
        return "it is another user's draft"
    # Before the owner file, which a whole one has lost when it gets its name.
    try:
        if MANIFEST in names:
            read_manifest(f"/proc/self/fd/{draft}")
            return "it is a whole checkpoint. Rename it, or remove it by hand"
    except DamagedError:
        pass  # The power went while it was written.
    except (OSError, ValueError) as error:
        return f"its {MANIFEST} can't be read: {error}"
    owner = own_draft(draft, users)
    # An empty directory has nothing to lose.
    if names and owner is None:
        return (f"no {OWNER} in it says that a save made it here. Look at it: a save of an earlier "
                "gpuio made it, or it has got another name. Then remove it by hand")
    if not any_host and not is_of_this_host(draft, owner or {}):
        return ("a process of another host may be writing it, whose locks may not be seen here. If "
                "no host saves there now, clean(…, any_host=True) removes it")
    try:
        # The owner file last: then the next call goes on after a kill.
        for name in sorted(names, key=lambda name: name == OWNER):
            os.unlink(name, dir_fd=draft)
        os.rmdir(path)
    except OSError as error:
        return f"it can't be removed: {error}"
    return None
