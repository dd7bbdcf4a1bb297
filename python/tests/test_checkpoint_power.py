"""Power that goes while checkpoints are written: each state that the disk may then be in.

Calls of the drain that change files are recorded while it saves. The power goes behind each call.
Then a change is on the disk for certain if the file, or the directory of the name, was flushed
after it; others are there or not, each by itself, which is the least that POSIX promises. Each such
state is made of real files, and what is in it must be whole.
"""

import builtins
import contextlib
import json
import os
import random
import socket
import tempfile
import threading
import unittest
import warnings
from pathlib import Path
from unittest import mock

import numpy

from gpuio import _checkpoint_drain, checkpoint

STEPS = 2


class Disk:
    """Stands for the drain's ``os``, and writes down what changes files. ``skips`` names what is
    not flushed, though the drain asks for it."""

    def __init__(self, base, skips=lambda path: False):
        self.base, self.skips, self.lock, self.log = str(base), skips, threading.RLock(), []

    def __getattr__(self, name):
        return getattr(os, name)

    def wrote(self, *change):
        with self.lock:
            self.log.append(change)

    def entry(self, path, inode):
        above, name = os.path.split(path)
        return (os.stat(above).st_ino, name, inode)

    def open(self, path, flags, *more, **named):
        is_new = flags & os.O_CREAT and not os.path.lexists(path)
        fd = os.open(path, flags, *more, **named)
        if is_new:
            self.wrote("names", self.entry(path, os.fstat(fd).st_ino))
        return fd

    def mkdir(self, path, *more):
        os.mkdir(path, *more)
        self.wrote("names", self.entry(path, os.stat(path).st_ino))

    def unlink(self, path):
        # Out of the way: its inode is not used again.
        os.rename(path, tempfile.mktemp(dir=os.path.dirname(self.base)))
        self.wrote("names", self.entry(path, None))

    def pwrite(self, fd, view, at):
        with self.lock:
            count = os.pwrite(fd, view, at)
            self.wrote("data", os.fstat(fd).st_ino, at, bytes(view[:count]))
        return count

    def ftruncate(self, fd, length):
        os.ftruncate(fd, length)
        self.wrote("length", os.fstat(fd).st_ino, length)

    def allocate(self, fd, length):
        os.posix_fallocate(fd, 0, max(length, 1))
        self.wrote("length", os.fstat(fd).st_ino, length)

    def fsync(self, fd):
        if not self.skips(os.readlink(f"/proc/self/fd/{fd}")):
            self.wrote("flush", os.fstat(fd).st_ino)

    def move(self, draft, directory):
        os.rename(draft, directory)
        inode = os.stat(directory).st_ino
        self.wrote("names", self.entry(draft, None), self.entry(directory, inode))

    def file(self, fd, mode="r", **named):
        """The built-in ``open``."""
        if not isinstance(fd, int) or mode == "rb":
            return builtins.open(fd, mode, **named)
        return File(self, fd)

    def after(self, count, stays):
        """The disk after so many changes: those that were flushed, and others where ``stays`` says
        so. Inodes, each a dictionary of names or bytes."""
        root = os.stat(self.base).st_ino
        inodes, later, kept = {root: {}}, set(), []
        for change in reversed(self.log[:count]):
            if change[0] == "flush":
                later.add(change[1])
                continue
            on = {one[0] for one in change[1:]} if change[0] == "names" else {change[1]}
            if on <= later or stays():
                kept.append(change)
        for kind, *what in reversed(kept):
            if kind == "names":
                for above, name, inode in what:
                    names = inodes.setdefault(above, {})
                    names.pop(name, None) if inode is None else names.update({name: inode})
                continue
            content = inodes.setdefault(what[0], bytearray())
            content.extend(bytes(max(what[1] - len(content), 0)))
            if kind == "length":
                del content[what[1]:]
            else:
                content[what[1]: what[1] + len(what[2])] = what[2]
        return root, inodes

    def make(self, where, inode, inodes, directories):
        """Files of a state. An inode without contents is a directory if it is one today."""
        os.mkdir(where)
        for name, below in inodes.get(inode, {}).items():
            path = os.path.join(where, name)
            if below in directories:
                self.make(path, below, inodes, directories)
            else:
                Path(path).write_bytes(inodes.get(below, b""))


class File:
    """A file that the drain writes as Python does."""

    def __init__(self, disk, fd):
        self.disk, self.fd, self.at = disk, fd, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def write(self, content):
        self.at += self.disk.pwrite(self.fd, content, self.at)

    def flush(self):
        pass

    def fileno(self):
        return self.fd


class InProcess(checkpoint._Drain):
    """A drain of this process: its calls are seen."""

    def __init__(self, stage):
        self.stage, self.handles, self.held, self.dead = stage, {}, {}, False
        self.link, theirs = socket.socketpair()
        self.drain = _checkpoint_drain.Drain(theirs, memoryview(stage.map), True)
        self.threads = [threading.Thread(target=self.drain.run), threading.Thread(target=self.hear)]
        for thread in self.threads:
            thread.start()

    def say(self, **message):
        self.drain.take(message)

    def hear(self):
        with self.link.makefile("rb") as lines:
            for line in lines:
                self._heard(json.loads(line))

    def close(self):
        self.drain.work.put(None)
        self.threads[0].join()
        self.drain.link.close()
        self.threads[1].join()
        self.link.close()


def state(step):
    return {"step": step, "a": numpy.full(1500, step), "b": numpy.full(9, step, "int8")}


class Power(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def recorded(self, skips=lambda path: False):
        """A disk with saves on it, and how many were complete after so many changes."""
        base = Path(tempfile.mkdtemp(dir=self.scratch))
        disk, complete, saver = Disk(base, skips), {}, checkpoint._Saver()
        saver.limit, saver.file_bytes = 4 << 20, 9000
        with contextlib.ExitStack() as patches:
            for module, name, value in (
                (_checkpoint_drain, "os", disk), (_checkpoint_drain, "open", disk.file),
                (_checkpoint_drain, "move", disk.move), (checkpoint, "_saver", saver),
            ):
                patches.enter_context(mock.patch.object(module, name, value, create=True))
            allocate = staticmethod(disk.allocate)
            patches.enter_context(mock.patch.object(_checkpoint_drain.Save, "allocate", allocate))
            saver.drain = InProcess(saver.staged())
            for step in range(STEPS):
                checkpoint.save(state(step), base / "run" / f"step-{step}").wait()
                complete[len(disk.log)] = step
            saver.drain.close()
        return disk, complete

    def lost(self, disk, complete):
        """What is wrong in states after a loss of power, in words."""
        chosen, wrong, seen = random.Random(5), [], set()
        entries = [Path(disk.base), *Path(disk.base).rglob("*")]
        directories = {entry.stat().st_ino for entry in entries if entry.is_dir()}
        ways = [lambda: False, lambda: True, *[lambda: chosen.random() < 0.6] * 2]
        for count in range(len(disk.log) + 1):
            known = max((step for at, step in complete.items() if at <= count), default=None)
            for way in ways:
                root, inodes = disk.after(count, way)
                if (known, repr(inodes)) in seen:
                    continue
                seen.add((known, repr(inodes)))
                where = tempfile.mkdtemp(dir=self.scratch) + "/at"
                disk.make(where, root, inodes, directories)
                wrong += self.wrong(os.path.join(where, "run"), known)
        self.assertGreater(len(seen), 40)
        return wrong

    def wrong(self, run, known):
        visible = [name for name in os.listdir(run) if name[0] != "."] if os.path.isdir(run) else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", checkpoint.PassedOverWarning)
            last = checkpoint.latest(run) if os.path.isdir(run) else None
        if known is not None and (last is None or int(last.rpartition("-")[2]) < known):
            yield f"step {known} was complete, and {last} is left"
        for name in visible:
            try:
                checkpoint.verify(os.path.join(run, name))
                found = checkpoint.load(os.path.join(run, name), as_="numpy")
                if found["step"] != int(name[5:]) or not (found["a"] == found["step"]).all():
                    yield f"{name} has another step's numbers"
            except (OSError, checkpoint.DamagedError) as error:
                yield f"{name} is visible and not whole: {error}"

    def test_what_is_complete_is_whole_after_a_loss_of_power(self):
        self.assertEqual(self.lost(*self.recorded()), [])

    def test_a_flush_that_is_left_out_is_found(self):
        for name, skips, says in (
            ("files", lambda path: path.endswith("model-00001-of-00002.safetensors"), "not whole"),
            ("manifest", lambda path: path.endswith(".json"), "not whole"),
            ("draft", lambda path: os.path.basename(path).startswith(".step"), "not whole"),
            ("above", lambda path: os.path.basename(path) == "run", "was complete"),
        ):
            with self.subTest(name):
                wrong = self.lost(*self.recorded(skips))
                self.assertTrue(any(says in one for one in wrong), wrong[:3])


if __name__ == "__main__":
    unittest.main()
