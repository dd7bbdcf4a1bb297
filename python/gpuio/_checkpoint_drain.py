"""The drain: a process that writes staged pages to files, and makes whole checkpoints visible.

It runs as a script (``python -I -S``) with the modules of Python alone: no CUDA, no gpuio. The
trainer hands it a socket and the memfd of the staged pages when it starts it, and then a message
for each save, each file in the pages, and each end (`main` has them). A file's pages stay as they
are until the drain has said that they are free.

A checkpoint is written into a draft beside its directory, each file flushed, then the draft is
renamed to the directory, which must not exist, and the directory above is flushed. So a directory
of that name is whole, whoever was killed and when. Several ranks agree in it (`Save.agreed`).
"""

import base64
import concurrent.futures
import ctypes
import errno
import fcntl
import hashlib
import json
import mmap
import os
import queue
import re
import select
import shutil
import socket
import stat
import struct
import sys
import threading
import time

MANIFEST = "gpuio-checkpoint.json"
# In a draft: its random `id`, the `inode` and the `birth_ns` of its directory, and the boot of the
# host that alone writes it.
OWNER = ".gpuio-draft.json"
# In a draft of several ranks: that a rank takes part in a save, that all do, the manifest of one,
# and that a rank gave up.
JOIN, RANKS = "rank-{:05}.join", "ranks.json"
PART, FAILED = "rank-{:05}.part.json", "rank-{:05}.failed"

_PAGE = 4096
# Bytes of one write, and how many are under way: what fills a drive.
_PIECE, _WRITERS = 8 << 20, 4
_LOOK_S = 0.05
# By which launchers name a job: the same for all of its ranks.
_JOB = ("SLURM_JOB_ID", "PMIX_NAMESPACE", "TORCHELASTIC_RUN_ID", "MASTER_PORT")
# So long a drain whose trainer has ended waits for the other ranks: it holds the staged pages.
OTHERS_S = 600
# `clean` holds a draft's lock for a moment.
_LOCK_S = 10
# What a manifest begins with, so that its number is known without all of it.
_NUMBER = re.compile(rb'\{"sha256":"[0-9a-f]{64}",\n"version":1,"number":([0-9]{1,30}),')
_STATX_BTIME, _EMPTY_PATH = 0x800, 0x1000
_NOREPLACE, _AT_FDCWD = 1, -100
# States of a save, as `gpuio top` shows them.
STAGED, WRITING, WAITS, COMPLETE, GAVE_UP = range(5)


class Stopped(Exception):
    """The trainer gave the save up, or has ended."""


def started_pool(count, name):
    """Threads that all run already. One that could not be started later would leave its work in
    the queue, to be done after its memory or its file is another's. RuntimeError if they don't."""
    pool = concurrent.futures.ThreadPoolExecutor(count, thread_name_prefix=name)
    together = threading.Barrier(count)
    try:
        for _ in range(count):
            pool.submit(together.wait)
    except BaseException:
        together.abort()
        raise
    return pool


def ended(futures):
    """Them as a list, when all have ended, also at Ctrl-C and beside one that failed: nothing
    touches their memory and files afterwards."""
    made, more, interrupt = [], iter(futures), None
    while True:
        try:
            for future in more:
                made.append(future)
            concurrent.futures.wait(made)
            break
        except BaseException as error:
            more, interrupt = iter(()), error
            for future in made:
                future.cancel()
    if interrupt is not None:
        raise interrupt
    return made


def results(futures):
    """Results in order, when all have ended."""
    return [future.result() for future in ended(futures)]


def flush(path):
    """fsync(2) of a file or a directory."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directories(path):
    """The directory and those above it, each flushed into the one above it."""
    if not os.path.isdir(path):
        make_directories(os.path.dirname(path))
        try:
            os.mkdir(path)
        except FileExistsError:
            pass
        flush(os.path.dirname(path))


def write_small(path, content, mode=0o644):
    """A new file, flushed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(path, flags, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def manifest_bytes(manifest):
    """A manifest as it is stored: its digest on the first line, so that each byte is covered."""
    body = json.dumps(manifest, separators=(",", ":"), ensure_ascii=True)[1:].encode() + b"\n"
    return b'{"sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body


def move(draft, directory):
    """Renames the draft, and never replaces anything."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(draft), os.fsencode(directory)
    if hasattr(libc, "renameat2"):
        if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(code, os.strerror(code), directory)
    # A file system without the flag. A directory replaces an empty one at most.
    if os.path.lexists(directory):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), directory)
    os.rename(draft, directory)


def read_start(path, most=-1):
    """The first bytes of a regular file; never waits for a pipe of that name."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        return file.read(most)


def highest_number(above, owner):
    """The highest number in the manifests of a user's checkpoints in a directory; 0 for none."""
    highest = 0
    with os.scandir(above) as entries:
        for entry in entries:
            try:
                if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.stat(follow_symlinks=False).st_uid == owner:
                    start = _NUMBER.match(read_start(os.path.join(entry.path, MANIFEST), 256))
                    highest = max(highest, int(start[1]) if start else 0)
            except OSError:
                pass  # No checkpoint, or it is removed just now.
    return highest


def birth_ns(fd):
    """When a file was made, as the file system has it, or None."""
    buffer = ctypes.create_string_buffer(256)
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "statx") or libc.statx(fd, b"", _EMPTY_PATH, _STATX_BTIME, buffer) != 0:
        return None
    mask, seconds, nanoseconds = struct.unpack_from("<I76xqI", buffer)
    return seconds * 10**9 + nanoseconds if mask & _STATX_BTIME else None


def boot():
    """The boot of this host, the same in all of its containers; None where it can't be read."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def new_draft(draft, alone=True):
    """Makes a draft, which no other user may enter: who opens a directory can lock it. It is of
    this host unless ranks of others may write there."""
    os.mkdir(draft, 0o700)
    fd = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        about = {"id": os.urandom(16).hex(), "inode": os.fstat(fd).st_ino,
                 "birth_ns": birth_ns(fd), "boot": boot() if alone else None}
        write_small(os.path.join(draft, OWNER), json.dumps(about).encode(), 0o600)
    except BaseException:
        os.close(fd)
        raise
    return fd


def make_draft(draft, rank):
    """The draft of several ranks, which one of them makes; its descriptor. Another user's, or a
    link, is refused: who owns the directory could change what is written there."""
    try:
        return new_draft(draft, alone=False)
    except FileExistsError:
        pass
    fd = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        owner = os.fstat(fd).st_uid
        if owner != os.geteuid():
            # A server may give files to another number than the process has (root squash).
            name = f"rank-{rank:05}.owner"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            own = os.open(name, flags, 0o600, dir_fd=fd)
            try:
                is_ours = os.fstat(own).st_uid == owner
            finally:
                os.close(own)
                os.unlink(name, dir_fd=fd)
            if not is_ours:
                raise PermissionError(errno.EPERM, "the draft is another user's", draft)
    except BaseException:
        os.close(fd)
        raise
    return fd


def job():
    """The job of this process, as far as its launcher has named it."""
    words = {name: os.environ[name] for name in _JOB if name in os.environ}
    # Parts of a heterogeneous job of Slurm have numbers of their own.
    if "SLURM_HET_SIZE" in os.environ:
        words.pop("SLURM_JOB_ID", None)
    return words


def lock_shared(fd, path):
    """So that `clean` leaves a draft alone, which holds the lock while it removes one."""
    until = time.monotonic() + _LOCK_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                text = f"{holder(fd)} has held its lock for {_LOCK_S} s"
                raise TimeoutError(errno.ETIMEDOUT, text, path) from None
        time.sleep(_LOOK_S)


def holder(fd):
    """The process that has locked a file, in words."""
    inode = str(os.fstat(fd).st_ino)
    with open("/proc/locks", encoding="ascii") as locks:
        for line in locks:
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == inode:
                return f"process {words[4]}"
    return "a process that can't be seen here"


def give_up(directory, draft, rank, world):
    """Removes what was written; of several ranks, says so to the others."""
    try:
        if world == 1:
            shutil.rmtree(draft, ignore_errors=True)
        elif not os.path.lexists(directory):
            # Before the others have begun, too.
            os.close(make_draft(draft, rank))
            write_small(os.path.join(draft, FAILED.format(rank)), b"")
    except OSError:
        pass  # The directory above is gone, or the rank has said so.


class Page:
    """The live page of this process (docs/stats.md), from which `gpuio top` has its saves.

    The layout is that of crates/watch/src/page/layout.rs. Any thread may call `show`.
    """

    _VERSION, _HEADER, _SLOT, _SLOTS = 2, 256, 8896, 4
    # Of a slot: its state, path, sequence numbers, and what each direction has.
    _NO_GPU, _PATH, _BEFORE, _AFTER = 1, 8, 112, 120
    _SIDES, _NUMBERS, _TEXT, _TEXT_BYTES = (128, 4512), 32, 160, 4224

    def __init__(self, base):
        own = self._own(base)
        self.lock, self.sequence, self.texts = threading.Lock(), 0, ["", ""]
        self.name = str(os.getpid())
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self.directory = os.open(own, flags)
        there = os.fstat(self.directory)
        if there.st_uid != os.geteuid() or there.st_mode & 0o077:
            raise PermissionError(errno.EPERM, "it is not this user's alone", own)
        self._clean()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self.name, flags, 0o600, dir_fd=self.directory)
        try:
            length = self._HEADER + self._SLOTS * self._SLOT
            # All of it now: a store to a full tmpfs would be a signal.
            os.posix_fallocate(fd, 0, length)
            self.map = mmap.mmap(fd, length)
            self._begin()
        except BaseException:
            self.remove()
            raise
        finally:
            os.close(fd)

    @staticmethod
    def _own(base):
        """This user's directory, made where it is missing, beside one of another user's."""
        name = f"gpuio-{os.geteuid()}"
        beside = sorted(one for one in os.listdir(base) if one.startswith(name + "-"))
        for one in (name, *beside, f"{name}-{os.urandom(8).hex()}"):
            own = os.path.join(base, one)
            try:
                if one not in beside:
                    os.mkdir(own, 0o700)
                    break
            except FileExistsError:
                pass
            if os.lstat(own).st_uid == os.geteuid():
                break
        return own

    def _clean(self):
        """Removes pages that killed processes of this PID namespace left."""
        space = os.stat("/proc/self/ns/pid").st_ino.to_bytes(8, "little")
        for name in filter(str.isdigit, os.listdir(self.directory)):
            # A page of this number is not ours yet: a process that had it before left it.
            if name != self.name and os.path.exists(f"/proc/{name}"):
                continue
            try:
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                             dir_fd=self.directory)
                with open(fd, "rb") as file:
                    is_ours = file.read(48)[40:] == space
                if is_ours:
                    os.unlink(name, dir_fd=self.directory)
            except OSError:
                pass  # Another has removed it, or may not.

    def _begin(self):
        with open("/proc/self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read().strip()
        space = os.stat("/proc/self/ns/pid").st_ino
        struct.pack_into("<2I", self.map, 16, self._SLOT, self._SLOTS)
        struct.pack_into("<2I4Q40s24s24s", self.map, 24, os.getpid(), os.geteuid(), start, space,
                         time.time_ns(), time.monotonic_ns(), boot, b"gpuio.checkpoint", b"drain")
        struct.pack_into("<24s", self.map, self._HEADER + self._PATH, b"saves")
        struct.pack_into("<8s2I", self.map, 0, b"gpuiopg\n", self._VERSION, self._HEADER)

    def show(self, totals, texts, numbers):
        """Bytes staged and written of all saves; the directory and the last error; numbers of the
        save, in the order of `Saves::of` in crates/watch/src/page/snapshot.rs."""
        with self.lock:
            self.sequence += 1
            self._put(self._BEFORE, self.sequence)
            for side, total, nth in zip(self._SIDES, totals, range(2)):
                self._put(side, total)
                if texts[nth] != self.texts[nth]:
                    text = texts[nth].encode("utf-8", "replace")[: self._TEXT_BYTES - 1]
                    struct.pack_into(f"<{self._TEXT_BYTES}s", self.map,
                                     self._HEADER + side + self._TEXT, text)
            self.texts = list(texts)
            for nth, number in enumerate(numbers):
                self._put(self._SIDES[0] + self._NUMBERS + 8 * nth, number)
            self._put(self._AFTER, self.sequence)
            self._put(0, self._NO_GPU)

    def _put(self, at, number):
        struct.pack_into("<Q", self.map, self._HEADER + at, number)

    def remove(self):
        try:
            os.unlink(self.name, dir_fd=self.directory)
        except OSError:
            pass


class Save:
    """A checkpoint that is being written."""

    def __init__(self, message, drain):
        self.id, self.drain = message["id"], drain
        self.directory, self.draft = message["directory"], message["draft"]
        self.rank, self.world = message["rank"], message["world"]
        self.survive, self.bytes = message["survive"], message["bytes"]
        self.staged, self.state = 0, STAGED
        self.began, self.written, self.direct = time.monotonic(), 0, True
        self.ended, self.over, self.stop = False, False, threading.Event()
        self.why = Stopped("the trainer gave it up")
        self.lock, self.number = None, 0
        # Of several ranks: of this one, of the save, of all ranks.
        self.member, self.save, self.members = os.urandom(16).hex(), None, [None] * self.world
        self.manifest, self.written_all = None, threading.Event()

    def begin(self):
        # `clean` removes only drafts that no process holds.
        if self.world == 1:
            self.lock = new_draft(self.draft)
        else:
            if os.path.lexists(self.directory):
                raise FileExistsError(errno.EEXIST, "it is there already", self.directory)
            self.lock = make_draft(self.draft, self.rank)
        lock_shared(self.lock, self.draft)
        if self.rank == 0:
            # Not at its end: several ranks may end saves in another order than they began them.
            above = os.path.dirname(self.directory)
            number = highest_number(above, os.fstat(self.lock).st_uid)
            self.number = 1 + max(number, self.drain.numbers.get(above, 0))
            self.drain.numbers[above] = self.number
        if self.world > 1 and self.rank == 0:
            self.join(self.member)

    def join(self, save):
        """Says that this rank takes part in a save, which has the name that rank 0 has in it."""
        about = {"save": save, "id": self.member, "world": self.world, "pid": os.getpid(),
                 "host": socket.gethostname(), "job": job()}
        path = os.path.join(self.draft, JOIN.format(self.rank))
        try:
            write_small(path, json.dumps(about).encode())
        except FileExistsError:
            raise self.used_before() from None
        self.save, self.members[self.rank] = save, self.member

    def used_before(self):
        there = self.read(JOIN.format(self.rank))
        who = f", by process {there['pid']} of {there['host']}" if there else ""
        text = (f"the token was used before: rank {self.rank} has files in this draft{who}. Give "
                "each save a new one; gpuio.checkpoint.clean removes the draft")
        return FileExistsError(errno.EEXIST, text, self.draft)

    def read(self, name):
        """A file of the ranks; None if it is not there, or not whole yet."""
        try:
            return json.loads(read_start(os.path.join(self.draft, name)))
        except (FileNotFoundError, ValueError):
            return None

    def names(self):
        """The names in the draft; None if it has become the checkpoint."""
        above = os.path.dirname(self.directory)
        # A client of NFS asks the server then.
        os.close(os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            names = set(os.listdir(self.draft))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ESTALE):
                raise
            there = self.read(os.path.join(self.directory, MANIFEST)) or {}
            if self.save is None or there.get("draft") != self.save:
                raise FileNotFoundError(errno.ENOENT, "the draft is gone", self.draft) from None
            return None
        for name in sorted(names):
            if name.endswith(".failed"):
                raise OSError(errno.ECANCELED, f"rank {int(name[5:10])} gave this checkpoint up")
        return names

    def agreed(self):
        """Whether all ranks are known to take part in this save.

        A draft may have files of an earlier life, or of another job, with the same token, whose
        processes can't be asked: they may be of another host. So each rank joins the save that rank
        0 has named, and only while its trainer lives; rank 0 lists them, and only while its own
        does. Then each was at work in this save together with rank 0. What names no member of the
        list does not count.
        """
        names = self.names()
        if names is None or RANKS in names:
            ranks = self.read(RANKS)
            if ranks is not None and (ranks["save"], ranks["members"][self.rank:self.rank + 1]) != (
                    self.save, [self.member]):
                raise self.used_before()
            return ranks is not None
        for rank in range(self.world) if self.rank == 0 else [0]:
            there = None
            if self.members[rank] is None and JOIN.format(rank) in names:
                there = self.read(JOIN.format(rank))
            if there is None:
                continue
            if there["world"] != self.world:
                raise OSError(errno.EINVAL, f"rank {rank} is one of {there['world']} ranks, and "
                              f"rank {self.rank} of {self.world}")
            for name in job().keys() & there["job"].keys():
                if job()[name] != there["job"][name]:
                    raise OSError(errno.EINVAL, f"rank {rank} is of another job: {name} is "
                                  f"{there['job'][name]!r} there, and {job()[name]!r} for rank "
                                  f"{self.rank}. Each save of each job needs a token of its own")
            if self.rank != 0:
                self.drain.check_trainer()
                self.join(there["id"])
            elif there["save"] != self.save:
                raise OSError(errno.EEXIST, "the token was used before: there is a rank "
                              f"{rank} of another save", self.draft)
            self.members[rank] = there["id"]
        # Behind the reads: what they found was there while the trainer lived.
        if self.rank == 0 or self.save is None:
            self.drain.check_trainer()
        if self.rank == 0 and None not in self.members:
            about = {"save": self.save, "members": self.members}
            write_small(os.path.join(self.draft, RANKS), json.dumps(about).encode())
            return True
        return False

    def file(self, message):
        path = os.path.join(self.draft, message["name"])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            plain = os.open(path, flags, 0o644)
        except FileExistsError:
            raise self.used_before() from None
        direct = None
        try:
            if self.drain.direct:
                try:
                    direct = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)
                except OSError as error:
                    if error.errno != errno.EINVAL:
                        raise
            self.allocate(plain, message["bytes"])
            total = -(-message["bytes"] // _PAGE) * _PAGE
            results(
                self.drain.writers.submit(
                    self.piece, direct, plain, message["at"], at, min(_PIECE, total - at),
                    message["bytes"]
                )
                for at in range(0, total, _PIECE)
            )
            os.ftruncate(plain, message["bytes"])
            os.fsync(plain)
        finally:
            os.close(plain)
            if direct is not None:
                os.close(direct)

    @staticmethod
    def allocate(fd, length):
        """Asks for the file's space at once: a full disk is known before its bytes are written."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong]
        if length and libc.fallocate(fd, 0, 0, length) != 0:
            code = ctypes.get_errno()
            if code not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINTR):
                raise OSError(code, os.strerror(code))

    def piece(self, direct, plain, start, at, length, ends):
        """Writes whole pages: the file is cut to where it ends afterwards."""
        done = 0
        while done < length:
            if self.stop.is_set():
                raise self.why
            here = self.drain.pages[start + at + done : start + at + length]
            fd = direct if direct is not None and done % _PAGE == 0 else plain
            try:
                count = os.pwrite(fd, here, at + done)
            except OSError as error:
                if fd is plain or error.errno != errno.EINVAL:
                    raise
                direct = None
                continue
            if fd is plain:
                self.direct = False
            self.drain.wrote(self, max(min(at + done + count, ends) - at - done, 0))
            done += count

    def end(self, message):
        """Makes it visible if it is of one rank."""
        for name, content in message["extras"].items():
            write_small(os.path.join(self.draft, name), base64.b64decode(content))
        if self.world == 1:
            self.commit(message["manifest"], [OWNER])
        else:
            self.manifest = message["manifest"]
            self.written_all.set()

    def put_part(self):
        """What rank 0 needs of another one, which is part of the save by now."""
        if self.rank != 0:
            # Rank 0 may be on another host: names that it finds are on the disk then.
            flush(self.draft)
            part = {"save": self.save, "id": self.member, "manifest": self.manifest}
            name = os.path.join(self.draft, PART.format(self.rank))
            write_small(name + ".new", json.dumps(part).encode())
            os.rename(name + ".new", name)

    def commit(self, manifest, passing):
        """Makes the draft visible, without what was only for its making."""
        manifest["number"] = self.number
        write_small(os.path.join(self.draft, MANIFEST), manifest_bytes(manifest))
        for name in passing:
            os.unlink(os.path.join(self.draft, name))
        mode = os.fstat(self.lock).st_mode & 0o7000
        os.fchmod(self.lock, mode | 0o777 & ~self.drain.umask)
        flush(self.draft)
        if self.stop.is_set():
            raise self.why
        move(self.draft, self.directory)
        flush(os.path.dirname(self.directory))

    def visible(self):
        """Whether it is complete: rank 0 makes it so when all parts of this save are there."""
        names = self.names()
        if names is None:
            return True
        others = range(1, self.world)
        if self.rank != 0 or not names.issuperset(map(PART.format, others)):
            return False
        manifest, passing = self.manifest, [OWNER, RANKS, JOIN.format(0)]
        for rank in others:
            part = self.read(PART.format(rank))
            if (part["save"], part["id"]) != (self.save, self.members[rank]):
                raise OSError(errno.EEXIST, "the token was used before: there is a part of rank "
                              f"{rank} of another save", self.draft)
            manifest["ranks"] += part["manifest"]["ranks"]
            manifest["extras"].update(part["manifest"]["extras"])
            passing += [JOIN.format(rank), PART.format(rank)]
        manifest["draft"] = self.save
        files = {name: about for one in manifest["ranks"] for name, about in one["files"].items()}
        for name, about in files.items():
            # By a descriptor: a client of NFS asks the server when a file is opened.
            fd = os.open(os.path.join(self.draft, name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                if os.fstat(fd).st_size != about["bytes"]:
                    raise OSError(errno.EIO, "it has not the bytes that were written", name)
            finally:
                os.close(fd)
        # A server's names of removed files are not ours.
        strange = names.difference(files, manifest["extras"], passing)
        strange = sorted(name for name in strange if not name.startswith(".nfs"))
        if strange:
            raise OSError(errno.EEXIST, "the token was used before: the draft has files of another "
                          f"save: {', '.join(strange[:5])}", self.draft)
        if os.stat(self.draft).st_ino != os.fstat(self.lock).st_ino:
            raise FileNotFoundError(errno.ENOENT, "the draft is another one now", self.draft)
        self.commit(manifest, passing)
        return True

    def give_up(self):
        give_up(self.directory, self.draft, self.rank, self.world)
        self.close()

    def close(self):
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


class Drain:
    def __init__(self, link, pages, direct, page=None, trainer=None):
        self.link, self.pages, self.direct, self.page = link, pages, direct, page
        self.trainer = trainer
        self.counting, self.totals, self.under_way, self.error = threading.Lock(), [0, 0], 0, ""
        self.shown = None
        self.writers = started_pool(_WRITERS, "gpuio-drain")
        self.alone_since = None
        self.work = queue.Queue()
        self.saves = {}
        self.said, self.said_at = threading.Lock(), 0.0
        self.waiting = []
        # The last of this process in each directory; and the mode of new directories.
        self.numbers = {}
        self.umask = os.umask(0o077)
        os.umask(self.umask)

    def say(self, **message):
        try:
            with self.said:
                self.link.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # The trainer has ended.

    def wrote(self, save, count):
        with self.counting:
            save.written += count
            self.totals[1] += count
        now = time.monotonic()
        if now - self.said_at > _LOOK_S:
            self.said_at = now
            self.say(op="wrote", id=save.id, bytes=save.written)
            self.show()

    def show(self, save=None, state=None):
        """The page shows a save's new state, of the save that is worked on if one is."""
        if self.page is None:
            return
        with self.counting:
            if save is not None:
                save.state = state
                if self.shown is None or self.shown.state >= COMPLETE or state != STAGED:
                    self.shown = save
            one = self.shown
            if one is not None:
                numbers = (one.bytes, one.staged, one.written, one.rank, one.world,
                           self.under_way, one.state)
                self.page.show(self.totals, (one.directory, self.error), numbers)

    def ends(self, save, state):
        """Whether a save ends now, and not before."""
        with self.counting:
            was, save.over = save.over, True
            self.under_way -= not was
        if not was:
            self.show(save, state)
        return not was

    def fail(self, save, error):
        text = str(error) or type(error).__name__
        self.error = text
        if self.ends(save, GAVE_UP):
            save.stop.set()
            save.give_up()
            code = getattr(error, "errno", None) or errno.EIO
            self.say(op="failed", id=save.id, errno=code, text=text)

    def done(self, save):
        if self.ends(save, COMPLETE):
            save.close()
            seconds = time.monotonic() - save.began
            self.say(op="done", id=save.id, bytes=save.written, seconds=seconds, direct=save.direct)

    def check_trainer(self):
        """Raises where the trainer has ended. It is asked now: the thread that hears of its end may
        not have run since."""
        watched = select.poll()
        if self.trainer is not None:
            watched.register(self.trainer, select.POLLIN)
        if self.alone_since is not None or watched.poll(0):
            raise ChildProcessError(errno.ECHILD, "its process ended before all ranks had begun")

    def with_others(self, save):
        """One of several ranks, beside its writes."""
        try:
            self.until(save, save.agreed)
            self.say(op="agreed", id=save.id)
            while not save.written_all.wait(_LOOK_S):
                if save.stop.is_set():
                    raise save.why
            save.put_part()
            self.show(save, WAITS)
            self.until(save, save.visible)
            self.done(save)
        except BaseException as error:
            self.fail(save, error)

    def until(self, save, ready):
        while not ready():
            if save.stop.wait(_LOOK_S):
                raise save.why
            alone = self.alone_since
            if alone is not None and time.monotonic() - alone > OTHERS_S:
                raise TimeoutError(errno.ETIMEDOUT, "the other ranks were not ready "
                                   f"{OTHERS_S} s after this one's process had ended")

    def step(self, message):
        save = self.saves[message["id"]]
        try:
            # One that has written all is in the hands of the thread that waits for the others.
            if save.over or save.written_all.is_set():
                return
            if save.stop.is_set():
                raise save.why
            if message["op"] == "save":
                save.begin()
                if save.world > 1:
                    waiter = threading.Thread(target=self.with_others, args=(save,))
                    waiter.start()
                    self.waiting.append(waiter)
            elif message["op"] == "file":
                self.show(save, WRITING)
                save.file(message)
            else:
                save.end(message)
                if save.world == 1:
                    self.done(save)
        except BaseException as error:
            self.fail(save, error)
        finally:
            if message["op"] == "file":
                self.say(op="freed", id=save.id, at=message["at"], bytes=message["bytes"])

    def run(self):
        while True:
            message = self.work.get()
            if message is None:
                break
            self.step(message)
        for waiter in self.waiting:
            waiter.join()

    def take(self, message):
        """A message of the trainer."""
        if message["op"] == "save":
            save = self.saves[message["id"]] = Save(message, self)
            with self.counting:
                self.under_way += 1
            self.show(save, STAGED)
        elif message["op"] == "file":
            with self.counting:
                self.saves[message["id"]].staged += message["bytes"]
                self.totals[0] += message["bytes"]
            self.show()
        elif message["op"] == "abort":
            self.saves[message["id"]].stop.set()
        elif message["op"] == "end":
            self.saves[message["id"]].ended = True
        self.work.put(message)

    def trainer_ended(self):
        """Only a save that has all its pages, and may go on, does."""
        self.alone_since = time.monotonic()
        for save in self.saves.values():
            if not (save.ended and save.survive):
                save.stop.set()
        for save in self.saves.values():
            if not save.ended:
                self.work.put({"op": "abort", "id": save.id})
        self.work.put(None)

    def refuse(self, error):
        """The trainer said what can't be understood: no save goes on, and nothing is heard."""
        self.say(op="deaf")
        text = f"the drain can't read its messages: {error or type(error).__name__}"
        for save in list(self.saves.values()):
            save.why, save.ended = OSError(errno.EBADMSG, text), False
            save.stop.set()


def framed(message):
    """A message to the drain: the length of its text, and the text."""
    text = json.dumps(message).encode()
    return struct.pack("<Q", len(text)) + text


def listen(link, trainer, take):
    """Hands on each message until the trainer closes the socket, or ends."""
    rest = bytearray()
    watched = select.poll()
    watched.register(link, select.POLLIN)
    if trainer is not None:
        watched.register(trainer, select.POLLIN)
    while True:
        # Children of the trainer may have the socket too, so its end is looked for as well. What it
        # said before is read first.
        ready = [fd for fd, _ in watched.poll()]
        if link.fileno() not in ready:
            return
        got = link.recv(1 << 20)
        if not got:
            return
        rest += got
        at = 0
        while len(rest) >= at + 8:
            end = at + 8 + struct.unpack_from("<Q", rest, at)[0]
            if len(rest) < end:
                break
            take(json.loads(rest[at + 8:end]))
            at = end
        del rest[:at]


def main(words):
    link, memory, length, trainer, direct = (int(word) for word in words[:5])
    try:
        os.nice(5)
        watched = os.pidfd_open(trainer)
    except (OSError, AttributeError):
        watched = None
    pages = memoryview(mmap.mmap(memory, length, mmap.MAP_SHARED, mmap.PROT_READ))
    try:
        page = Page(words[5])
    except (OSError, ValueError, IndexError):
        page = None  # No shared memory, or it is full: nothing is shown.
    drain = Drain(socket.socket(fileno=link), pages, bool(direct), page, watched)
    worker = threading.Thread(target=drain.run)
    worker.start()
    try:
        listen(drain.link, watched, drain.take)
    except OSError:
        pass  # The connection was reset: the trainer has ended.
    except BaseException as error:
        drain.refuse(error)
    finally:
        drain.trainer_ended()
        worker.join()
    if page is not None:
        page.remove()


if __name__ == "__main__":
    main(sys.argv[1:])
