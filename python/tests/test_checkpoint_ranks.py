"""Saves of several ranks are of one moment; values are saved as they are, or refused."""

import contextlib
import errno
import enum
import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from collections import namedtuple
from unittest import mock

import numpy
from test_checkpoint import HANG_S, HAS_TORCH, KILLS, Case, drains, ended, python, state

import gpuio
from gpuio import _checkpoint_drain, _checkpoint_format, checkpoint
from gpuio._checkpoint_drain import Drain, Save, framed

# A rank that says what became of its save; "die" leaves it all as power that goes does.
RANK = """
import os, signal, sys, numpy
from gpuio import checkpoint
where, rank, world, value, how = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
checkpoint.configure(limit=4 << 20)
handle = checkpoint.save({"x": numpy.full(9, value)}, where, rank=rank, world_size=world, token="t",
                         survive=how != "plain")
if how == "die":
    sys.stdin.readline()
    os.kill(checkpoint._saver.drain.process.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
if how == "orphan":
    print("staged", flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
try:
    handle.wait(60)
    print("complete", flush=True)
except BaseException as error:
    print(error, flush=True)
os._exit(0)
"""


class Ranks(Case):
    def rank(self, rank, world, value, how="plain"):
        words = [sys.executable, "-c", RANK, self.dir / "one", rank, world, value, how]
        process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def until(self, *names):
        """Until the draft, which the token names, has these."""
        draft, began = self.dir / ".one.gpuio-draft-t", time.monotonic()
        while not all((draft / name).exists() for name in names):
            self.assertLess(time.monotonic() - began, HANG_S, names)
            time.sleep(0.005)

    def dies(self, process):
        process.stdin.write("\n")
        process.stdin.flush()
        process.wait(HANG_S)

    def none(self):
        """No such checkpoint."""
        self.assertFalse((self.dir / "one").exists())

    def test_parts_of_an_earlier_life_do_not_count(self):
        for dead, file in ((0, "rank-00000.join"), (1, "rank-00001.safetensors")):
            with self.subTest(dead=dead):
                old = self.rank(dead, 2, 100, "die")
                self.until(file)
                time.sleep(0.3)
                self.dies(old)
                # The other rank is first: nothing in the draft is its own.
                other = self.rank(1 - dead, 2, 200)
                time.sleep(0.5)
                self.none()
                again = self.rank(dead, 2, 200)
                self.assertRegex(again.stdout.read(), f"used before: rank {dead} has files")
                self.assertIn(f"rank {dead} gave this checkpoint up", other.stdout.read())
                self.none()
                self.assertEqual(len(checkpoint.clean(self.dir)), 1)

    def test_an_orphan_takes_no_rank_of_a_later_life(self):
        for orphan in (0, 1):
            with self.subTest(orphan=orphan):
                old = self.rank(orphan, 2, 100, "orphan")
                self.assertEqual(old.stdout.readline(), "staged\n")
                (drain,) = drains(old.pid)
                self.until(f"rank-0000{orphan}.safetensors")
                self.dies(old)
                ended(drain)
                other = self.rank(1 - orphan, 2, 200)
                self.assertIn(f"rank {orphan} gave this checkpoint up", other.stdout.read())
                self.none()
                self.assertEqual(len(checkpoint.clean(self.dir)), 1)

    def test_a_rank_whose_process_ends_when_all_have_begun_is_in_it(self):
        ranks = [self.rank(rank, 2, 100, "orphan") for rank in range(2)]
        pids = [drains(rank.pid) for rank in ranks if rank.stdout.readline()]
        for rank in ranks:
            with contextlib.suppress(AssertionError):
                self.until("ranks.json") if not (self.dir / "one").exists() else None
            self.dies(rank)
        for (pid,) in pids:
            ended(pid)
        self.assertEqual(checkpoint.verify(self.dir / "one"), (2, 144))

    def test_ranks_of_unequal_worlds_are_no_checkpoint(self):
        ranks = [self.rank(0, 2, 1), self.rank(1, 3, 1)]
        said = [rank.stdout.read() for rank in ranks]
        self.assertTrue(any("rank 1 of 3" in one or "one of 3 ranks" in one for one in said), said)
        self.assertFalse(any("complete" in one for one in said), said)
        self.none()

    def test_two_jobs_of_one_token_are_no_checkpoint(self):
        ranks = [self.rank(0, 2, value) for value in (1, 2)]
        said = sorted(rank.stdout.read() for rank in ranks)
        self.assertIn("rank 0 gave this checkpoint up", said[0])
        self.assertIn("used before: rank 0 has files in this draft, by process", said[1])
        self.none()

    def test_no_checkpoint_has_two_lives_whoever_is_killed_and_when(self):
        chosen = random.Random(os.urandom(8))
        for nth in range(KILLS // 2):
            old = [self.rank(rank, 2, 100, "orphan") for rank in range(2)]
            time.sleep(chosen.random() * 0.6)
            pids = [pid for rank in old for pid in drains(rank.pid)]
            for rank in old:
                rank.kill()
            for pid in pids:
                if chosen.random() < 0.5:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            order = chosen.sample((0, 1), 2)
            new = []
            for rank in order:
                new.append(self.rank(rank, 2, 200))
                time.sleep(chosen.random() * 0.2)
            said = [rank.communicate(timeout=HANG_S)[0] for rank in new]
            for rank in [*old, *new]:
                for pid in drains(rank.pid):
                    ended(pid)
            if (self.dir / "one").exists():
                values = [checkpoint.load(self.dir / "one", rank=rank, as_="numpy")["x"][0]
                          for rank in range(2)]
                self.assertIn(values, ([100, 100], [200, 200]), said)
                self.assertEqual(checkpoint.verify(self.dir / "one"), (2, 144))
                if values == [100, 100]:
                    self.assertFalse(any("complete" in one for one in said), said)
            shutil.rmtree(self.dir / "one", ignore_errors=True)
            checkpoint.clean(self.dir)


class Draft(Case):
    """A drain of this process, step by step: the other ranks are files, as those of other hosts."""

    def setUp(self):
        super().setUp()
        self.final, self.draft = self.dir / "one", self.dir / ".one.gpuio-draft-t"
        self.ours, theirs = socket.socketpair()
        self.addCleanup(self.ours.close)
        self.addCleanup(theirs.close)
        self.drain = Drain(theirs, memoryview(bytearray(b"7" * 8192)), False)

    def saved(self, rank=0, world=2, **more):
        message = {"op": "save", "id": len(self.drain.saves), "directory": str(self.final),
                   "draft": str(self.draft), "rank": rank, "world": world, "survive": True,
                   "bytes": 9, **more}
        save = self.drain.saves[message["id"]] = Save(message, self.drain)
        save.begin()
        self.addCleanup(save.close)
        return save

    def file(self, save, name):
        save.file({"name": name, "at": 0, "bytes": 9})
        return {"version": 1, "number": 0, "created": 0.0, "extras": {},
                "ranks": [{"structure": None, "files": {name: {"bytes": 9}}, "tensors": {}}]}

    def end(self, save, manifest):
        save.end({"manifest": manifest, "extras": {}})

    def put(self, name, **content):
        (self.draft / name).write_text(json.dumps(content))

    def test_what_another_life_left_in_a_draft_is_refused_at_each_step(self):
        right = {"save": "S", "id": "m", "world": 2, "host": "h", "pid": 1,
                 "job": {"SLURM_JOB_ID": "7"}}
        environment = mock.patch.dict(os.environ, {"SLURM_JOB_ID": "7", "MASTER_PORT": "1"})
        environment.start()
        self.addCleanup(environment.stop)
        part = {"save": "S", "id": "m", "manifest": {
            "ranks": [{"files": {"rank-00001.safetensors": {"bytes": 5}}}], "extras": {}}}
        for what, joins, parts, strange, words in (
            ("right", right, part, (), None),
            ("join of another save", {**right, "save": "old"}, part, (), "of another save"),
            ("another job", {**right, "job": {"MASTER_PORT": "2"}}, part, (), "MASTER_PORT is '2'"),
            ("another world", {**right, "world": 3}, part, (), "one of 3 ranks"),
            ("part of another save", right, {**part, "save": "old"}, (), "of another save"),
            ("part of another member", right, {**part, "id": "old"}, (), "of another save"),
            ("a file more", right, part, ("rank-00001-00001-of-00002.safetensors",), "files of an"),
            ("a rank that gave up", right, part, ("rank-00001.failed",), "rank 1 gave"),
            ("a file that is cut", right, {**part, "manifest": {
                "ranks": [{"files": {"rank-00001.safetensors": {"bytes": 6}}}], "extras": {}}},
             (), "not the bytes"),
        ):
            with self.subTest(what):
                self.final, self.draft = self.dir / what, self.dir / f".{what}.gpuio-draft-t"
                save = self.saved()
                for name in strange:
                    (self.draft / name).write_bytes(b"")
                (self.draft / "rank-00001.safetensors").write_bytes(b"12345")

                def put(name, content):
                    named = {"S": save.save}.get(content["save"], content["save"])
                    self.put(name, **{**content, "save": named})

                def all_of_it():
                    self.assertFalse("gave" not in what and save.agreed())
                    put("rank-00001.join", joins)
                    self.assertTrue(save.agreed() and save.agreed())
                    self.end(save, self.file(save, "rank-00000.safetensors"))
                    self.assertFalse(save.visible())
                    put("rank-00001.part.json", parts)
                    return save.visible()

                if words is None:
                    self.assertTrue(all_of_it())
                    found = sorted(os.listdir(self.final))
                    self.assertEqual(found, ["gpuio-checkpoint.json", "rank-00000.safetensors",
                                             "rank-00001.safetensors"])
                    continue
                with self.assertRaisesRegex(OSError, words):
                    all_of_it()
                self.assertFalse(self.final.exists())

    def test_a_rank_joins_and_rank_0_lists_only_while_their_trainers_live(self):
        save = self.saved()
        self.put("rank-00001.join", save=save.save, id="m", world=2, job={})
        self.drain.alone_since = time.monotonic()
        with self.assertRaisesRegex(ChildProcessError, "before all ranks had begun"):
            save.agreed()
        (self.draft / "rank-00001.join").unlink()
        with self.assertRaisesRegex(ChildProcessError, "before all ranks had begun"):
            self.saved(rank=1).agreed()
        self.drain.alone_since = None
        other = self.saved(rank=1)
        self.assertFalse(other.agreed())
        self.drain.alone_since = time.monotonic()
        self.assertFalse(other.agreed())
        self.put("ranks.json", save=save.save, members=[save.member, "another life"])
        with self.assertRaisesRegex(FileExistsError, "used before: rank 1"):
            other.agreed()
        self.put("ranks.json", save=save.save, members=[save.member, other.member])
        self.assertTrue(other.agreed())

    def test_a_trainer_is_asked_when_it_counts(self):
        trainer = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.addCleanup(trainer.wait)
        self.addCleanup(trainer.stdin.close)
        self.drain.trainer = os.pidfd_open(trainer.pid)
        self.addCleanup(os.close, self.drain.trainer)
        save, other = self.saved(), self.saved(rank=1)
        self.assertFalse(save.agreed())
        trainer.kill()
        trainer.wait()
        # No thread of the drain has heard of it.
        for one in (other, save):
            with self.assertRaisesRegex(ChildProcessError, "before all ranks had begun"):
                one.agreed()
        self.assertFalse((self.draft / "rank-00001.join").exists())

    def test_a_rank_does_not_take_another_save_for_its_own(self):
        save, other = self.saved(), self.saved(rank=1)
        self.assertFalse(other.agreed())
        self.assertTrue(save.agreed())
        os.rename(self.draft, self.final)
        with self.assertRaisesRegex(FileNotFoundError, "the draft is gone"):
            other.visible()
        for named in ("another", save.save):
            (self.final / "gpuio-checkpoint.json").write_text(json.dumps({"draft": named}))
            if named == "another":
                with self.assertRaisesRegex(FileNotFoundError, "the draft is gone"):
                    other.visible()
        self.assertTrue(other.visible())

    def test_a_drain_without_its_trainer_does_not_wait_for_others_for_ever(self):
        for rank, code, limit in ((0, errno.ECHILD, 600), (1, errno.ETIMEDOUT, 0)):
            with self.subTest(rank=rank):
                self.final, self.draft = self.dir / str(rank), self.dir / f".{rank}.gpuio-draft-t"
                if rank == 1:
                    first = self.saved()
                number = len(self.drain.saves)
                self.drain.alone_since = None
                self.drain.take({"op": "save", "id": number, "directory": str(self.final),
                                 "draft": str(self.draft), "rank": rank, "world": 2,
                                 "survive": True, "bytes": 0})
                self.drain.step(self.drain.work.get())
                while rank == 1 and self.drain.saves[number].save != first.save:
                    time.sleep(0.005)
                self.drain.take({"op": "end", "id": number, "manifest": {}, "extras": {}})
                with mock.patch.object(_checkpoint_drain, "OTHERS_S", limit):
                    self.drain.trainer_ended()
                    self.drain.run()
                said = [json.loads(line) for line in self.ours.recv(1 << 16).splitlines()]
                failed = [one for one in said if one["id"] == number]
                self.assertEqual((failed[-1]["op"], failed[-1]["errno"]), ("failed", code), said)
                self.assertTrue((self.draft / f"rank-{rank:05}.failed").exists())

    def test_a_draft_says_whose_it_is_and_is_this_user_s_alone(self):
        for world in (1, 2):
            self.final, self.draft = self.dir / str(world), self.dir / f".{world}.gpuio-draft-t"
            save = self.saved(world=world)
            about = json.loads((self.draft / ".gpuio-draft.json").read_text())
            self.assertEqual(list(about), ["id", "inode", "birth_ns", "boot"])
            self.assertRegex(about["id"], "^[0-9a-f]{32}$")
            there = self.draft.stat()
            self.assertEqual((about["inode"], there.st_mode & 0o777), (there.st_ino, 0o700))
            birth = subprocess.run(["stat", "-c", "%W", str(self.draft)], stdout=subprocess.PIPE)
            seconds = int(birth.stdout) if birth.stdout[:1].isdigit() else 0
            self.assertEqual((about["birth_ns"] or 0) // 10**9, seconds)
            self.assertEqual((self.draft / ".gpuio-draft.json").stat().st_mode & 0o777, 0o600)
            if world == 1:
                self.end(save, self.file(save, "model.safetensors"))
                self.assertEqual(sorted(os.listdir(self.final)),
                                 ["gpuio-checkpoint.json", "model.safetensors"])
                usual = self.dir / "usual"
                usual.mkdir()
                self.assertEqual(self.final.stat().st_mode, usual.stat().st_mode)

    def test_a_lock_that_stays_is_an_error_with_its_holder(self):
        self.draft.mkdir()
        fd = os.open(self.draft, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        with mock.patch.object(_checkpoint_drain, "_LOCK_S", 0):
            with self.assertRaisesRegex(TimeoutError, f"process {os.getpid()} has held its lock"):
                self.saved()

    def test_a_lock_of_the_directory_above_stops_nothing(self):
        fd = os.open(self.dir, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        handles = [checkpoint.save(state(), self.final, rank=rank, world_size=2, token="t")
                   for rank in range(2)]
        for handle in handles:
            handle.wait(HANG_S)

    def test_numbers_are_in_the_order_in_which_saves_began(self):
        def number(path):
            return json.loads((path / "gpuio-checkpoint.json").read_text())["number"]

        # Of another program, of an older gpuio, and of another user.
        os.makedirs(self.dir / "pipe")
        os.mkfifo(self.dir / "pipe/gpuio-checkpoint.json")
        (self.dir / "old").mkdir()
        old = _checkpoint_drain.manifest_bytes({"version": 1, "created": 9e9})
        (self.dir / "old/gpuio-checkpoint.json").write_bytes(old)
        if os.geteuid() == 0:
            (self.dir / "other").mkdir()
            other = _checkpoint_drain.manifest_bytes({"version": 1, "number": 77, "created": 9e9})
            (self.dir / "other/gpuio-checkpoint.json").write_bytes(other)
            os.chown(self.dir / "other", 12345, 12345)
        held = self.saved()
        self.final, self.draft = self.dir / "two", self.dir / ".two.gpuio-draft-t"
        save = self.saved(world=1)
        self.end(save, self.file(save, "model.safetensors"))
        self.assertEqual((held.number, number(self.final)), (1, 2))
        with mock.patch.object(checkpoint.time, "time", lambda: 5.0):
            checkpoint.save(state(), self.dir / "three").wait()
        self.assertEqual(number(self.dir / "three"), 3)


class Text(str):
    def __str__(self):
        return "custom"


class Number(float):
    def __float__(self):
        return 1.0


class Whole(int):
    def __int__(self):
        return 7


class Odd(str):
    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)


class Schedule(str, enum.Enum):
    COSINE = "cosine"


class Values(Case):
    def test_values_come_back_equal(self):
        pair = namedtuple("pair", "a b")
        saved = {
            "enum": Schedule.COSINE, Schedule.COSINE: Text("real"), "f": Number(2.5),
            "i": Whole(3), "flags": enum.IntFlag("Flags", "A B").B, "pair": pair(1, -0.0),
            "numpy": numpy.uint64(2**64 - 1), 2: numpy.str_("text"), "half": numpy.float16(0.1),
            "mapped": numpy.memmap(self.dir / "mapped", "f4", "w+", shape=3),
        }
        checkpoint.save(saved, self.dir / "one").wait()
        loaded = checkpoint.load(self.dir / "one", as_="numpy")
        self.assertEqual(list(loaded), list(saved))
        for key, value in loaded.items():
            same = numpy.array_equal(value, saved[key]) if key == "mapped" else value == saved[key]
            self.assertTrue(same, key)
        self.assertEqual([type(key) for key in loaded][:2], [str, str])
        self.assertEqual((loaded["enum"], loaded["cosine"]), ("cosine", "real"))
        checkpoint.save({"nan": numpy.float64("nan")}, self.dir / "nan").wait()
        self.assertNotEqual(*[checkpoint.load(self.dir / "nan")["nan"]] * 2)

    def test_what_would_not_come_back_is_refused_by_name(self):
        deep = {"x": numpy.zeros(1)}
        for _ in range(450):
            deep = {"k": deep}
        circle = []
        circle.append(circle)
        for wrong, kind, words in (
            ({"m": numpy.ma.masked_array([1.0, 2.0], mask=[0, 1])}, TypeError, "'m' is of type MaskedAr"),
            ({"m": numpy.ma.masked}, TypeError, "'m' is of type MaskedConstant"),
            ({"r": numpy.zeros(2, "f4").view(numpy.recarray)}, TypeError, "'r' is of type recarray"),
            ({"l": numpy.longdouble(1) / 3}, TypeError, "l is longdouble of NumPy"),
            ({"t": numpy.datetime64(5, "ns")}, TypeError, "t is datetime64 of NumPy"),
            ({"o": Odd("a")}, TypeError, "o is of type Odd that does not equal its str"),
            ({"a": 1, Odd("a"): 2}, TypeError, "the key .* that does not equal"),
            ({"n": 10**4300}, ValueError, "n is an integer of more than 4300 digits"),
            ({"h": "\ud83d\ude00"}, ValueError, "does not read back"),
            (deep, ValueError, "more than 200 levels"),
            (circle, ValueError, "more than 200 levels"),
            ({"w\udcff": numpy.arange(3.0)}, ValueError, "model.safetensors would be no whole"),
        ):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                checkpoint.save(wrong, self.dir / "wrong")
        self.assertEqual(os.listdir(self.dir), [])

    @unittest.skipUnless(HAS_TORCH, "SKIPPED: no PyTorch here")
    def test_a_tensor_that_wraps_others_is_refused(self):
        import torch

        class Wraps(torch.Tensor):
            @staticmethod
            def __new__(cls, inside):
                return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                raise NotImplementedError

        with self.assertRaisesRegex(TypeError, "'w' is of type Wraps"):
            checkpoint.save({"w": Wraps(torch.ones(3))}, self.dir / "wrong")
        given = {"p": torch.nn.Parameter(torch.ones(3))}
        checkpoint.save(given, self.dir / "one").wait()
        self.assertEqual(checkpoint.load(self.dir / "one")["p"].tolist(), [1, 1, 1])

    def test_a_header_has_no_more_than_can_be_read(self):
        names = {"k" * 900 + f"é{n}": numpy.full(1, n) for n in range(20)}
        with mock.patch.object(_checkpoint_format, "_HEADER_MOST", 5000):
            checkpoint.save(names, self.dir / "one").wait()
        headers = [path.read_bytes()[:8] for path in self.dir.glob("one/*.safetensors")]
        self.assertEqual(len(headers), 5)
        self.same(names, checkpoint.load(self.dir / "one", as_="numpy"))
        # The limit that the library has.
        large = {"k" * 50_000 + str(n): numpy.zeros(1, "u1") for n in range(2010)}
        files = _checkpoint_format.laid_out(_checkpoint_format.Flat(large).leaves.values(),
                                            1 << 30, "model")
        _checkpoint_format.check_headers(files)
        self.assertEqual(len(files), 2)


class Messages(Case):
    def test_a_message_may_come_in_any_pieces(self):
        messages = [{"op": "a", "text": "x" * 3000}, {"op": "b"}]
        stream = b"".join(map(framed, messages))
        for cut in (1, 7, 8, 9, 1000, len(stream)):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                sender = threading.Thread(target=lambda: [
                    [theirs.sendall(stream[at:at + cut]) for at in range(0, len(stream), cut)],
                    theirs.shutdown(socket.SHUT_WR)])
                sender.start()
                found = []
                _checkpoint_drain.listen(ours, None, found.append)
                sender.join()
            self.assertEqual(found, messages)

    def test_a_long_message_is_not_looked_at_again_for_each_piece(self):
        class Link:
            """Gives pieces, however many."""

            def __init__(self, *pieces):
                self.pieces, (self.ours, self.theirs) = list(pieces), socket.socketpair()
                self.theirs.close()

            def fileno(self):
                return self.ours.fileno()

            def recv(self, _):
                return self.pieces.pop(0) if self.pieces else b""

        # 64 MiB in pieces of a socket's buffer would be copied 2,000 times over: minutes.
        text = framed("x" * (64 << 20))
        link, found = Link(*[text[at:at + 8192] for at in range(0, len(text), 8192)]), []
        self.addCleanup(link.ours.close)
        began = time.process_time()
        _checkpoint_drain.listen(link, None, lambda message: found.append(len(message)))
        self.assertEqual(found, [64 << 20])
        self.assertLess(time.process_time() - began, 20)

    def test_what_the_drain_can_not_read_fails_its_saves_and_the_next_has_another(self):
        checkpoint.prepare({})
        first = checkpoint._saver.drain
        os.kill(first.process.pid, signal.SIGSTOP)
        handles = [checkpoint.save(state(), self.dir / name, rank=0, world_size=world, token="t",
                                   survive=world == 2)
                   for name, world in (("alone", 1), ("of-two", 2))]
        text = b"[" * 100_000
        first.link.sendall(len(text).to_bytes(8, "little") + text)
        os.kill(first.process.pid, signal.SIGCONT)
        for handle in handles:
            with contextlib.suppress(gpuio.GpuioError):
                handle.wait(HANG_S)
        self.assertIn("can't read its messages", str(handles[1]._error))
        checkpoint.save(state(), self.dir / "next").wait(HANG_S)
        self.assertIsNot(checkpoint._saver.drain, first)
        self.assertEqual(first.process.wait(HANG_S), 0)

    def test_a_drain_that_says_what_can_not_be_read_is_ended(self):
        checkpoint.prepare({})
        drain = checkpoint._saver.drained()
        os.kill(drain.process.pid, signal.SIGSTOP)
        handle = checkpoint.save(state(), self.dir / "one")
        with mock.patch.object(drain, "_heard", side_effect=ValueError):
            os.kill(drain.process.pid, signal.SIGCONT)
            with self.assertRaisesRegex(gpuio.GpuioError, "the drain process ended"):
                handle.wait(HANG_S)
        self.assertEqual(drain.process.wait(HANG_S), -signal.SIGKILL)

    def test_limits_that_a_program_raised_leave_no_save_that_hangs(self):
        program = """
import sys, numpy
from gpuio import checkpoint
checkpoint.configure(limit=4 << 20)
sys.setrecursionlimit(100_000)
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
deep = {"x": numpy.zeros(3)}
for _ in range(450):
    deep = {"k": deep}
for wrong in (deep, {"n": 10**5000}):
    try:
        checkpoint.save(wrong, sys.argv[1])
    except ValueError as error:
        print("refused")
deep = {"x": numpy.zeros(3)}
for _ in range(198):
    deep = {"k": deep}
print(checkpoint.save([deep, "x" * (8 << 20)], sys.argv[1]).wait(60).done)
"""
        done = python(program, self.dir / "one")
        self.assertEqual(done.stdout, "refused\nrefused\nTrue\n", done.stderr)
        checkpoint.load(self.dir / "one")


if __name__ == "__main__":
    unittest.main()
