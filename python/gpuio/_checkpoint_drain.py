"""The drain: a process that writes staged pages to files, and makes whole checkpoints visible.

It runs as a script (``python -I -S``) with the modules of Python alone: no CUDA, no gpuio. The
trainer hands it a socket and the memfd of the staged pages when it starts it, and then a message
for each save, each file in the pages, and each end (`main` has them). A file's pages stay as they
are until the drain has said that they are free.

A checkpoint is written into a draft beside its directory, each file flushed, then the draft is
renamed to the directory, which must not exist, and the directory above is flushed. So a directory
of that name is whole, whoever was killed and when.
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
import select
import shutil
import socket
import struct
import sys
import threading
import time

MANIFEST = "gpuio-checkpoint.json"
# In a draft: the manifest of one of several ranks, and that a rank gave up.
PART, FAILED = "rank-{:05}.part.json", "rank-{:05}.failed"

_PAGE = 4096
# Bytes of one write, and how many are under way: what fills a drive.
_PIECE, _WRITERS = 8 << 20, 4
_LOOK_S = 0.05
# So long a drain whose trainer has ended waits for the other ranks: it holds the staged pages.
_OTHERS_S = 600
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


def write_small(path, content):
    """A new file, flushed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(path, flags, 0o644), "wb") as file:
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


def make_draft(draft, rank):
    """The draft of several ranks, which one of them makes; its descriptor. Another user's, or a
    link, is refused: who owns the directory could change what is written there."""
    try:
        os.mkdir(draft)
    except FileExistsError:
        pass
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags)
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
        self.ended, self.failed, self.stop = False, False, threading.Event()
        self.lock = None

    def begin(self):
        # `clean` removes only drafts that no process holds.
        if self.world == 1:
            os.mkdir(self.draft)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            self.lock = os.open(self.draft, flags)
        else:
            self.lock = make_draft(self.draft, self.rank)
        fcntl.flock(self.lock, fcntl.LOCK_SH)

    def file(self, message):
        path = os.path.join(self.draft, message["name"])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        plain = os.open(path, flags, 0o644)
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
                raise Stopped
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
        """Makes it visible, or one of several ranks ready for that. True if it is visible."""
        for name, content in message["extras"].items():
            write_small(os.path.join(self.draft, name), base64.b64decode(content))
        if self.world == 1:
            self.commit(message["manifest"])
            return True
        name = os.path.join(self.draft, PART.format(self.rank))
        write_small(name + ".new", json.dumps(message["manifest"]).encode())
        os.rename(name + ".new", name)
        flush(self.draft)
        return self.commit_all()

    def commit(self, manifest):
        write_small(os.path.join(self.draft, MANIFEST), manifest_bytes(manifest))
        flush(self.draft)
        if self.stop.is_set():
            raise Stopped
        move(self.draft, self.directory)
        flush(os.path.dirname(self.directory))

    def commit_all(self):
        """Commits if all ranks are ready: whichever rank finds that first. True if it is done."""
        above = os.open(os.path.dirname(self.directory), os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(above, fcntl.LOCK_EX)
            if not os.path.isdir(self.draft):
                with open(os.path.join(self.directory, MANIFEST), "rb") as file:
                    text = file.read()
                if json.loads(text).get("draft") != os.path.basename(self.draft):
                    raise FileNotFoundError(errno.ENOENT, "the draft is gone", self.draft)
                return True
            names = set(os.listdir(self.draft))
            for rank in range(self.world):
                if FAILED.format(rank) in names:
                    raise OSError(errno.ECANCELED, f"rank {rank} gave this checkpoint up")
            parts = [PART.format(rank) for rank in range(self.world)]
            if not names.issuperset(parts):
                return False
            manifest = None
            for part in parts:
                with open(os.path.join(self.draft, part), "rb") as file:
                    one = json.load(file)
                if manifest is None:
                    manifest = one
                else:
                    manifest["ranks"] += one["ranks"]
                    manifest["extras"].update(one["extras"])
            manifest["draft"] = os.path.basename(self.draft)
            for part in parts:
                os.unlink(os.path.join(self.draft, part))
            self.commit(manifest)
            return True
        finally:
            os.close(above)

    def give_up(self):
        give_up(self.directory, self.draft, self.rank, self.world)
        self.close()

    def close(self):
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


class Drain:
    def __init__(self, link, pages, direct, page=None):
        self.link, self.pages, self.direct, self.page = link, pages, direct, page
        self.counting, self.totals, self.under_way, self.error = threading.Lock(), [0, 0], 0, ""
        self.shown = None
        self.writers = started_pool(_WRITERS, "gpuio-drain")
        self.alone_since = None
        self.work = queue.Queue()
        self.saves = {}
        self.said, self.said_at = threading.Lock(), 0.0
        self.waiting = []

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

    def over(self, save, state):
        with self.counting:
            self.under_way -= 1
        self.show(save, state)

    def fail(self, save, error):
        if not save.failed:
            save.failed = True
            save.give_up()
            code = getattr(error, "errno", None) or errno.EIO
            text = str(error) or type(error).__name__
            self.error = text
            self.over(save, GAVE_UP)
            self.say(op="failed", id=save.id, errno=code, text=text)

    def done(self, save):
        save.close()
        self.over(save, COMPLETE)
        seconds = time.monotonic() - save.began
        self.say(op="done", id=save.id, bytes=save.written, seconds=seconds, direct=save.direct)

    def wait_for_others(self, save):
        try:
            while not save.commit_all():
                if save.stop.wait(_LOOK_S):
                    raise Stopped
                alone = self.alone_since
                if alone is not None and time.monotonic() - alone > _OTHERS_S:
                    raise TimeoutError(errno.ETIMEDOUT, "the other ranks were not ready "
                                       f"{_OTHERS_S} s after this one's process had ended")
            self.done(save)
        except BaseException as error:
            self.fail(save, error)

    def step(self, message):
        save = self.saves[message["id"]]
        try:
            if save.failed:
                return
            if save.stop.is_set():
                raise Stopped("the trainer gave it up")
            if message["op"] == "save":
                save.begin()
            elif message["op"] == "file":
                self.show(save, WRITING)
                save.file(message)
            elif save.end(message):
                self.done(save)
            else:
                self.show(save, WAITS)
                waiter = threading.Thread(target=self.wait_for_others, args=(save,))
                waiter.start()
                self.waiting.append(waiter)
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


def listen(link, trainer, take):
    """Hands on each message until the trainer closes the socket, or ends."""
    rest = b""
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
        *lines, rest = (rest + got).split(b"\n")
        for line in lines:
            take(json.loads(line))


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
    drain = Drain(socket.socket(fileno=link), pages, bool(direct), page)
    worker = threading.Thread(target=drain.run)
    worker.start()
    try:
        listen(drain.link, watched, drain.take)
    except OSError:
        pass  # The connection was reset: the trainer has ended.
    drain.trainer_ended()
    worker.join()
    if page is not None:
        page.remove()


if __name__ == "__main__":
    main(sys.argv[1:])
