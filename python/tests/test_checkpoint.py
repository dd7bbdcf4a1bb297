"""Checkpoints: complete or invisible, whoever is killed; each byte is covered by a digest."""

import errno
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

import numpy

import gpuio
from gpuio import _checkpoint_drain, _checkpoint_stage, checkpoint

HAS_TORCH = importlib.util.find_spec("torch") is not None
# Trainers, drains and both that are killed at random moments; 500 by hand.
KILLS = int(os.environ.get("GPUIO_TEST_KILLS", "6"))
# Only a hang takes so long.
HANG_S = 120

TRAINER = """
import sys, numpy
from gpuio import checkpoint
where, survive = sys.argv[1], sys.argv[2] == "yes"
checkpoint.configure(limit=8 << 20, file_bytes=300_000)
checkpoint.prepare({})
print("drain", checkpoint._saver.drain.process.pid, flush=True)
for step in range(1000):
    state = {"step": step, "a": numpy.full(60_000, step), "b": numpy.full(5, step, "int8")}
    try:
        handle = checkpoint.save(state, f"{where}/step-{step:03}", survive=survive)
        if step % 3 == 0:
            handle.wait()
            print("whole", step, flush=True)
    except OSError as error:
        print("error", error.errno, flush=True)
"""


def state(step=7):
    return {
        "model": {"w": numpy.arange(6000, dtype="f4").reshape(60, 100), "no": numpy.zeros((0, 3))},
        "optimizer": {"state": {0: {"m": numpy.ones(3)}}, "betas": (0.9, 0.9), "on": [True, None]},
        "scalar": numpy.array(3, "int16"),
        "step": step,
    }


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)

    def same(self, one, other):
        if isinstance(one, numpy.ndarray):
            self.assertEqual(one.dtype, other.dtype)
            numpy.testing.assert_array_equal(one, other)
        elif isinstance(one, dict):
            self.assertEqual(list(one), list(other))
            for key in one:
                self.same(one[key], other[key])
        else:
            self.assertEqual((type(one), one), (type(other), other))


class Plain(Case):
    def test_a_state_comes_back_and_any_tool_reads_its_file(self):
        handle = checkpoint.save(state(), self.dir / "one").wait()
        self.assertTrue(handle.done)
        self.same(state(), checkpoint.load(self.dir / "one", as_="numpy"))
        into = state(0)
        into["model"]["w"][:] = 0
        self.assertEqual(checkpoint.load(self.dir / "one", into=into)["step"], 7)
        self.same(into["model"], state()["model"])
        loaded = gpuio.safetensors(self.dir / "one/model.safetensors", "cpu")
        self.assertEqual(loaded["model.w"].shape, (60, 100))
        self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "one"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["one"])

    def test_memory_of_a_gpu_is_saved_with_digests_of_the_device(self):
        checkpoint.save({"x": numpy.arange(70_001, dtype="u1")}, self.dir / "host").wait()
        on_gpu = checkpoint.load(self.dir / "host", "cuda", as_="gpuio")
        self.assertEqual(on_gpu["x"].device, "cuda:0")
        checkpoint.save(on_gpu, self.dir / "gpu").wait()
        host, gpu = (
            json.loads((self.dir / name / "gpuio-checkpoint.json").read_text())["ranks"][0]
            for name in ("host", "gpu")
        )
        self.assertEqual(host["tensors"], gpu["tensors"])
        into = {"x": gpuio.Memory(0, 70_001).tensor("uint8", (70_001,))}
        checkpoint.load(self.dir / "gpu", into=into)
        self.assertEqual(into["x"].tobytes(), numpy.arange(70_001, dtype="u1").tobytes())

    def test_a_type_that_numpy_lacks_names_the_way_out(self):
        made = gpuio.Memory("cpu", 8).tensor("bfloat16", (4,))
        checkpoint.save({"x": made}, self.dir / "one").wait()
        with self.assertRaisesRegex(TypeError, 'NumPy has no bfloat16.*as_="gpuio"') as raised:
            checkpoint.load(self.dir / "one", as_="numpy")
        self.assertNotIn("loaded[", str(raised.exception))
        loaded = checkpoint.load(self.dir / "one", as_="gpuio")
        self.assertEqual(loaded["x"].tobytes(), made.tobytes())

    def test_several_files_have_an_index_and_more_than_the_limit_is_saved(self):
        program = (
            "import sys, numpy\nfrom gpuio import checkpoint\n"
            "checkpoint.configure(limit=1 << 20)\n"
            "big = {f't{n}': numpy.full(50_000, n) for n in range(8)}\n"
            "checkpoint.save(big, sys.argv[1]).wait()\n"
            "try:\n    checkpoint.save({'x': numpy.zeros(1 << 20)}, sys.argv[1] + '-no')\n"
            "except OSError as error:\n    print(error)\n"
        )
        done = python(program, self.dir / "many")
        self.assertIn("larger limit", done.stdout, done.stderr)
        names = os.listdir(self.dir / "many")
        self.assertIn("model.safetensors.index.json", names)
        self.assertEqual(checkpoint.verify(self.dir / "many"), (8, 8 * 400_000))
        self.assertEqual(os.listdir(self.dir), ["many"])

    def test_staged_pages_can_not_be_cut_off(self):
        checkpoint.prepare({})
        with self.assertRaises(PermissionError):
            os.ftruncate(checkpoint._saver.stage.fd, 4096)

    def test_a_child_made_by_fork_is_refused(self):
        checkpoint.prepare({})
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                checkpoint.save(state(), self.dir / "child")
            except gpuio.GpuioError as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.close(write)
        with open(read, "rb") as words:
            self.assertIn(b"made by fork", words.read())
        os.waitpid(child, 0)

    def test_a_program_that_ends_waits_for_its_save(self):
        program = (
            "import sys, numpy\nfrom gpuio import checkpoint\n"
            "checkpoint.configure(limit=4 << 20)\n"
            "checkpoint.save({'x': numpy.zeros(9)}, sys.argv[1])\nsys.exit(3)\n"
        )
        self.assertEqual(python(program, self.dir / "one").returncode, 3)
        self.assertEqual(checkpoint.verify(self.dir / "one"), (1, 72))

    def test_tied_tensors_are_stored_once(self):
        tied = numpy.ones(4)
        checkpoint.save({"a": tied, "b": tied}, self.dir / "tied").wait()
        self.assertEqual(checkpoint.verify(self.dir / "tied"), (1, 32))
        self.same({"a": tied, "b": tied}, checkpoint.load(self.dir / "tied", as_="numpy"))

    def test_what_can_not_be_saved_is_refused_before_anything_is_written(self):
        for wrong, kind, words in [
            ({"x": object()}, TypeError, "x is of type object"),
            ({(1, 2): 3}, TypeError, "no plain value"),
            ({"x": numpy.ones(2, ">f8")}, TypeError, "reverse order"),
            ({"x": numpy.ones(2, "c16")}, TypeError, "do not have"),
        ]:
            with self.assertRaisesRegex(kind, words):
                checkpoint.save(wrong, self.dir / "wrong")
        (self.dir / "there").mkdir()
        with self.assertRaises(FileExistsError):
            checkpoint.save(state(), self.dir / "there")
        with self.assertRaisesRegex(ValueError, "token"):
            checkpoint.save(state(), self.dir / "ranks", world_size=2)
        with self.assertRaisesRegex(FileNotFoundError, "no complete checkpoint"):
            checkpoint.load(self.dir / "there")
        self.assertEqual(os.listdir(self.dir), ["there"])

    def test_a_filled_state_has_the_same_tensors(self):
        checkpoint.save({"x": numpy.zeros((4, 4))}, self.dir / "one").wait()
        for into, words in [
            ({"y": numpy.zeros((4, 4))}, "not in the state: x; not in the checkpoint: y$"),
            ({"x": numpy.zeros((4, 4)), "y": numpy.zeros(1)}, "one: not in the checkpoint: y$"),
            ({f"y{n}": numpy.zeros(1) for n in range(9)}, "y0, y1, y2, y3, y4, and 4 more$"),
            ({"x": numpy.zeros((4, 5))}, "float64"),
            ({"x": numpy.zeros((4, 8))[:, ::2]}, "can't be filled"),
            ({"x": numpy.frombuffer(bytes(128)).reshape(4, 4)}, "can't be filled"),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                checkpoint.load(self.dir / "one", into=into)

    def test_a_filled_state_has_the_numbers_too(self):
        def made(step, lr):
            group = {"lr": lr, "betas": (lr, step), "names": ["a", None]}
            return {"step": step, "model": {1: numpy.full(3, lr)}, "groups": [group]}

        checkpoint.save(made(500, 0.5), self.dir / "one").wait()
        into = made(0, 0.0)
        inside = into["model"], into["groups"], into["groups"][0], into["model"][1]
        into["own"] = "stays"
        returned = checkpoint.load(self.dir / "one", into=into)
        self.assertIs(returned, into)
        self.assertTrue(all(a is b for a, b in zip(
            inside, (into["model"], into["groups"], into["groups"][0], into["model"][1]))))
        self.assertEqual((into["step"], into["own"]), (500, "stays"))
        group = {"lr": 0.5, "betas": (0.5, 500), "names": ["a", None]}
        self.assertEqual(into["groups"], [group])
        self.assertEqual(list(into["model"][1]), [0.5] * 3)
        # Nothing of a damaged one.
        with open(self.dir / "one/model.safetensors", "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"!")
        into = made(0, 0.0)
        with self.assertRaises(checkpoint.DamagedError):
            checkpoint.load(self.dir / "one", into=into)
        self.assertEqual((into["step"], into["groups"][0]["lr"]), (0, 0.0))

    def test_a_checkpoint_of_another_kind_is_named_and_not_loaded_as_nothing(self):
        manifest = {"ranks": [{}], "extras": {".metadata": {}}}
        with mock.patch.object(checkpoint, "read_manifest", return_value=manifest):
            with self.assertRaisesRegex(ValueError, "gpuio.checkpoint.Reader reads it"):
                checkpoint.load(os.path.join(self.dir, "dcp"))

    def test_staged_memory_keeps_to_the_limit_of_a_files_size(self):
        stage = """
import resource, sys, numpy
resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, resource.RLIM_INFINITY))
from gpuio import checkpoint
checkpoint.save({"a": numpy.arange(1 << 16)}, sys.argv[1]).wait()
print(checkpoint.load(sys.argv[1])["a"][-1])
try:
    checkpoint.save({"a": numpy.zeros(2 << 20)}, sys.argv[1] + "-large")
except OSError as error:
    print(error)
"""
        words = [sys.executable, "-c", stage, os.path.join(self.dir, "small")]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout.split("\n")[0], "65535", done.stderr)
        self.assertIn("raise the limit of a file's size (ulimit -f)", done.stdout)

    def test_ranks_appear_together(self):
        both = {"world_size": 2, "token": "t"}
        first = checkpoint.save({"x": numpy.zeros(9)}, self.dir / "all", rank=0, **both)
        self.assertFalse((self.dir / "all").exists())
        second = checkpoint.save({"x": numpy.ones(9)}, self.dir / "all", rank=1, **both)
        first.wait(HANG_S), second.wait(HANG_S)
        self.assertEqual(checkpoint.verify(self.dir / "all"), (2, 144))
        self.same({"x": numpy.ones(9)}, checkpoint.load(self.dir / "all", rank=1, as_="numpy"))
        # A rank that gives up, before the other one begins.
        _checkpoint_drain.give_up(str(self.dir / "no"), str(self.dir / ".no.gpuio-draft-t"), 1, 2)
        # The drain may know before all is staged: then the save itself raises, here and below.
        with self.assertRaisesRegex(gpuio.GpuioError, "rank 1 gave"):
            checkpoint.save({"x": numpy.zeros(9)}, self.dir / "no", rank=0, **both).wait(HANG_S)
        self.assertEqual(len(checkpoint.clean(self.dir)), 1)
        self.assertEqual(os.listdir(self.dir), ["all"])

    def test_a_draft_of_another_user_or_a_link_is_refused(self):
        (self.dir / "elsewhere").mkdir()
        (self.dir / ".link.gpuio-draft-t").symlink_to("elsewhere")
        names = ["link"]
        if os.geteuid() == 0:
            (self.dir / ".other.gpuio-draft-t").mkdir()
            os.chown(self.dir / ".other.gpuio-draft-t", 12345, 12345)
            names.append("other")
        for name in names:
            with self.assertRaises(gpuio.GpuioError) as caught:
                all_ = {"rank": 0, "world_size": 2, "token": "t"}
                checkpoint.save(state(), self.dir / name, **all_).wait(HANG_S)
            self.assertIn(caught.exception.errno, (errno.ELOOP, errno.ENOTDIR, errno.EPERM))
            self.assertFalse((self.dir / name).exists())
            self.assertEqual(os.listdir(self.dir / f".{name}.gpuio-draft-t"), [])


class Damage(Case):
    def test_a_flipped_bit_in_each_of_many_files_is_found_and_named(self):
        shapes = {"a": 300, "b": 17, "c": 4000}
        tensors = {name: numpy.arange(n, dtype="u1") for name, n in shapes.items()}
        checkpoint.save(tensors, self.dir / "whole").wait()
        about = json.loads((self.dir / "whole/gpuio-checkpoint.json").read_text())
        places = about["ranks"][0]["tensors"]
        chosen = random.Random(43)
        data = (self.dir / "whole/model.safetensors").read_bytes()
        work = self.dir / "work"
        for _ in range(100):
            shutil.copytree(self.dir / "whole", work)
            at, bit = chosen.randrange(len(data)), 1 << chosen.randrange(8)
            spoilt = bytearray(data)
            spoilt[at] ^= bit
            (work / "model.safetensors").write_bytes(spoilt)
            hit = [name for name, one in places.items()
                   if one["offset"] <= at < one["offset"] + one["bytes"]] or ["model.safetensors"]
            for look in (checkpoint.verify, checkpoint.load):
                with self.assertRaises(checkpoint.DamagedError) as caught:
                    look(work)
                self.assertEqual(list(caught.exception.damaged), hit, at)
            shutil.rmtree(work)

    def test_a_damaged_manifest_or_a_missing_file_is_named(self):
        checkpoint.save(state(), self.dir / "one").wait()
        manifest = self.dir / "one/gpuio-checkpoint.json"
        right = manifest.read_bytes()
        for at in range(0, len(right), 97):
            manifest.write_bytes(right[:at] + bytes([right[at] ^ 2]) + right[at + 1:])
            with self.assertRaisesRegex(checkpoint.DamagedError, "gpuio-checkpoint.json"):
                checkpoint.verify(self.dir / "one")
        with self.assertWarnsRegex(checkpoint.PassedOverWarning, "gpuio-checkpoint.json"):
            self.assertIsNone(checkpoint.latest(self.dir))
        manifest.write_bytes(right)
        checkpoint.save(state(), self.dir / "two").wait()
        self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "two"))
        for damage in (lambda it: os.truncate(it, 4096), os.unlink):
            damage(self.dir / "two/model.safetensors")
            with self.assertWarnsRegex(checkpoint.PassedOverWarning, "two is damaged: model.saf"):
                self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "one"))
        (self.dir / "one/model.safetensors").unlink()
        with self.assertWarns(checkpoint.PassedOverWarning):
            self.assertIsNone(checkpoint.latest(self.dir))
        with self.assertRaisesRegex(checkpoint.DamagedError, "No such file"):
            checkpoint.load(self.dir / "one")
        checkpoint.save(state(), self.dir / "three").wait()
        (self.dir / "three/gpuio-checkpoint.json").unlink()
        with self.assertWarnsRegex(checkpoint.PassedOverWarning, "three.*json: it is missing"):
            self.assertIsNone(checkpoint.latest(self.dir))
        # Another program's model, and a pipe of such a name.
        shutil.rmtree(self.dir / "three")
        shutil.rmtree(self.dir / "two")
        shutil.rmtree(self.dir / "one")
        (self.dir / "model").mkdir()
        (self.dir / "model/model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
        os.mkfifo(self.dir / "model/pipe.safetensors")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertIsNone(checkpoint.latest(self.dir))
        (self.dir / "empty").mkdir()
        self.assertIsNone(checkpoint.latest(self.dir / "empty"))
        self.assertEqual(checkpoint.clean(self.dir / "empty"), [])
        for look in (checkpoint.latest, checkpoint.clean, checkpoint.load, checkpoint.verify):
            with self.assertRaisesRegex(FileNotFoundError, "(?i)no such.*directory.*/none'$"):
                look(self.dir / "none")
        self.assertIsNone(checkpoint.latest(self.dir / "none", missing_ok=True))

    def test_a_damaged_tensor_is_passed_over_where_that_is_asked_for(self):
        for step in range(2):
            checkpoint.save(state(step), self.dir / str(step)).wait()
        with open(self.dir / "1/model.safetensors", "r+b") as file:
            file.seek(-5, os.SEEK_END)
            file.write(b"!")
        self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "1"))
        with self.assertWarnsRegex(checkpoint.PassedOverWarning, "1 is damaged: "):
            self.assertEqual(checkpoint.latest(self.dir, verify=True), str(self.dir / "0"))
        with self.assertRaisesRegex(checkpoint.DamagedError, "have its bytes already"):
            checkpoint.load(self.dir / "1", into=state())

    def test_a_checkpoint_that_another_process_removes_meanwhile_is_none(self):
        checkpoint.save(state(), self.dir / "one").wait()
        (self.dir / "two").mkdir()
        real = checkpoint.read_manifest

        def removed(path, *users):
            if path == str(self.dir / "two"):
                shutil.rmtree(path)
            return real(path, *users)

        with mock.patch.object(checkpoint, "read_manifest", side_effect=removed):
            self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "one"))

    def test_what_may_not_be_read_is_an_error_and_no_damage(self):
        for step in range(2):
            checkpoint.save(state(), self.dir / str(step)).wait()
        real, newest = checkpoint.read_manifest, str(self.dir / "1")

        def refused(path, *users):
            if path == newest:
                raise OSError(errno.EMFILE, "Too many open files", path)
            return real(path, *users)

        with mock.patch.object(checkpoint, "read_manifest", refused):
            with self.assertRaisesRegex(OSError, "Too many open files"):
                checkpoint.latest(self.dir)
        no_memory = mock.Mock(side_effect=OSError(errno.ENOMEM, "Cannot allocate memory"))
        with mock.patch.object(checkpoint, "_reader", lambda fd: no_memory):
            with self.assertRaisesRegex(OSError, "allocate"):
                checkpoint.verify(newest)
        with self.assertRaisesRegex(ValueError, "rank 3 is none of the 1"):
            checkpoint.load(newest, rank=3)

    def test_no_file_outside_its_directory_is_read(self):
        checkpoint.save(state(), self.dir / "one").wait()
        manifest = json.loads((self.dir / "one/gpuio-checkpoint.json").read_text())
        del manifest["sha256"]
        files = manifest["ranks"][0]["files"]
        files["../other"] = files.pop("model.safetensors")
        text = _checkpoint_drain.manifest_bytes(manifest)
        (self.dir / "one/gpuio-checkpoint.json").write_bytes(text)
        with self.assertRaisesRegex(checkpoint.DamagedError, "../other: it is no file of the"):
            checkpoint.verify(self.dir / "one")

    def test_a_manifest_of_more_bytes_than_the_tensor_has_writes_nothing(self):
        checkpoint.save({"x": numpy.arange(64), "y": numpy.arange(640)}, self.dir / "one").wait()
        manifest = json.loads((self.dir / "one/gpuio-checkpoint.json").read_text())
        del manifest["sha256"]
        about = manifest["ranks"][0]["tensors"]["x"]
        about["bytes"] += 1024
        text = _checkpoint_drain.manifest_bytes(manifest)
        (self.dir / "one/gpuio-checkpoint.json").write_bytes(text)
        memory = numpy.zeros(1024, dtype=int)
        into = {"x": memory[:64], "y": numpy.zeros(640, dtype=int)}
        with self.assertRaisesRegex(checkpoint.DamagedError, "x: its 1536 bytes are not those"):
            checkpoint.load(self.dir / "one", into=into)
        self.assertFalse(memory.any())

    def test_two_saves_of_one_token_do_not_remove_each_others_draft(self):
        saves = [{"x": numpy.full(5000, nth)} for nth in range(2)]
        one = checkpoint.save(saves[0], self.dir / "a/same", token="same")
        # Where the first is complete by now, nothing is begun.
        there = (gpuio.GpuioError, FileExistsError)
        with self.assertRaisesRegex(there, "omething of that name"):
            checkpoint.save(saves[1], self.dir / "a/same", token="same").wait()
        one.wait()
        self.assertEqual(checkpoint.load(self.dir / "a/same", as_="numpy")["x"].sum(), 0)

    def test_a_child_made_by_fork_reads_with_threads_of_its_own(self):
        checkpoint.save(state(), self.dir / "one").wait()
        checkpoint.verify(self.dir / "one")
        child = os.fork()
        if child == 0:
            signal.alarm(HANG_S)
            try:
                checkpoint.verify(self.dir / "one")
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Threads(unittest.TestCase):
    def test_all_work_has_ended_where_one_part_fails(self):
        pool, over = _checkpoint_drain.started_pool(3, "test"), []
        begun = threading.Event()

        def slow(nth):
            begun.set()
            time.sleep(0.05 * nth)
            over.append(nth)

        def parts():
            yield pool.submit(slow, 2)
            yield pool.submit(self.fail, "one part")
            yield pool.submit(slow, 3)

        with self.assertRaisesRegex(AssertionError, "one part"):
            _checkpoint_drain.results(parts())
        self.assertEqual(sorted(over), [2, 3])

        def cut_short():
            begun.clear()
            yield pool.submit(slow, 4)
            begun.wait()
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            _checkpoint_drain.results(cut_short())
        self.assertEqual(sorted(over), [2, 3, 4])
        pool.shutdown()

    def test_a_pool_whose_threads_do_not_start_is_an_error_at_once(self):
        with mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start")):
            with self.assertRaises(RuntimeError):
                _checkpoint_drain.started_pool(2, "test")

    def test_limits_of_control_groups_above_hold_too(self):
        with tempfile.TemporaryDirectory() as scratch:
            def group(path, **files):
                for name, content in files.items():
                    place = Path(scratch, path)
                    place.mkdir(parents=True, exist_ok=True)
                    (place / name.replace("__", ".")).write_text(f"{content}\n")

            own = Path(scratch, "own")
            own.write_text("4:memory,cpu:/a/b\n3:pids:/x\n0::/job/step\n")
            stat = "inactive_file 10\nactive_file 20"
            group("job", memory__max=1000, memory__current=900, memory__stat=stat)
            group("job/step", memory__max="max", memory__current=100, memory__stat=stat)
            group("memory/a/b", memory__limit_in_bytes=500, memory__usage_in_bytes=100,
                  memory__stat="total_inactive_file 1\ntotal_active_file 2")
            found = _checkpoint_stage._free_in_groups(str(own), scratch)
            self.assertEqual(sorted(found), [130, 403])
            self.assertEqual(_checkpoint_stage._free_in_groups(scratch + "/none", scratch), [])


def python(program, *words, **options):
    return subprocess.run([sys.executable, "-c", program, *map(str, words)], timeout=HANG_S,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


class Failures(Case):
    def fails(self, handle, code):
        with self.assertRaises(gpuio.GpuioError) as caught:
            handle.wait(HANG_S)
        self.assertEqual(caught.exception.errno, code, caught.exception)
        self.assertIn("older checkpoints are as they were", str(caught.exception))

    def test_a_directory_that_vanishes_and_then_the_next_call_says_so(self):
        checkpoint.prepare({})
        drain = checkpoint._saver.drain.process.pid
        os.kill(drain, signal.SIGSTOP)
        handles = [checkpoint.save(state(), self.dir / f"above-{n}/one") for n in range(2)]
        for n in range(2):
            shutil.rmtree(self.dir / f"above-{n}")
        os.kill(drain, signal.SIGCONT)
        self.fails(handles[0], errno.ENOENT)
        handles[1]._done.wait()
        with self.assertRaisesRegex(gpuio.GpuioError, "above-1"):
            checkpoint.save(state(), self.dir / "next")
        checkpoint.save(state(), self.dir / "next").wait()
        self.assertEqual(os.listdir(self.dir), ["next"])

    def test_a_full_disk_leaves_nothing(self):
        program = (
            "import sys, resource, numpy\nfrom gpuio import checkpoint\n"
            "small = {'x': numpy.zeros(10)}\n"
            "checkpoint.configure(limit=4 << 20)\ncheckpoint._saver.staged()\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
            "checkpoint.save(small, sys.argv[1] + '/old').wait()\n"
            "try:\n    checkpoint.save({'x': numpy.zeros(1 << 17)}, sys.argv[1] + '/new').wait()\n"
            "except OSError as error:\n    print(error.errno, error)\n"
        )
        done = python(program, self.dir)
        self.assertIn(f"{errno.EFBIG} ", done.stdout, done.stderr)
        self.assertEqual(os.listdir(self.dir), ["old"])
        checkpoint.verify(self.dir / "old")

    def test_an_error_that_nothing_raised_is_printed_at_the_end(self):
        program = (
            "import sys, shutil, os, signal, numpy\nfrom gpuio import checkpoint\n"
            "checkpoint.prepare({})\ndrain = checkpoint._saver.drain.process.pid\n"
            "os.kill(drain, signal.SIGSTOP)\n"
            "checkpoint.save({'x': numpy.zeros(9)}, sys.argv[1] + '/above/one')\n"
            "shutil.rmtree(sys.argv[1] + '/above')\nos.kill(drain, signal.SIGCONT)\n"
        )
        done = python(program, self.dir)
        # A script that goes on where its program ended well must not.
        self.assertEqual(done.returncode, 120)
        self.assertRegex(done.stderr, "^gpuio: .*above/one was not written: .*No such file")

    def test_writes_that_fail_or_are_short_or_refuse_o_direct(self):
        real = os.pwrite
        ways = {
            "eio": lambda fd, view, at: self.raised(errno.EIO),
            "short": lambda fd, view, at: real(fd, view[: max(len(view) // 2, 1)], at),
            "einval": lambda fd, view, at: (
                self.raised(errno.EINVAL) if os.get_blocking(fd) and direct(fd)
                else real(fd, view, at)
            ),
        }

        def direct(fd):
            import fcntl

            return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT

        for name, way in ways.items():
            ours, theirs = socket.socketpair()
            pages = memoryview(bytearray(b"7" * 8192))
            draft, final = str(self.dir / f".{name}.draft"), str(self.dir / name)
            with mock.patch.object(_checkpoint_drain.os, "pwrite", way):
                drain = _checkpoint_drain.Drain(theirs, pages, name != "short")
                drain.take({"op": "save", "id": 1, "directory": final, "draft": draft, "rank": 0,
                            "world": 1, "survive": False, "bytes": 5000})
                drain.take({"op": "file", "id": 1, "name": "f", "at": 0, "bytes": 5000})
                drain.take({"op": "end", "id": 1, "manifest": {}, "extras": {}})
                drain.work.put(None)
                drain.run()
            said = [json.loads(line) for line in ours.recv(1 << 16).splitlines()]
            ends = [one for one in said if one["op"] in ("done", "failed")]
            if name == "eio":
                self.assertEqual(ends[0]["errno"], errno.EIO)
                self.assertFalse(os.path.exists(final) or os.path.exists(draft))
            else:
                self.assertEqual([one["op"] for one in ends], ["done"], ends)
                self.assertEqual(Path(final, "f").read_bytes(), b"7" * 5000)
                self.assertEqual(ends[0]["bytes"], 5000)
            ours.close(), theirs.close()

    @unittest.skipIf(os.geteuid(), "only root can give a directory away")
    def test_another_user_with_the_name_of_the_pages_hides_none(self):
        for taken in (f"gpuio-{os.geteuid()}", f"gpuio-{os.geteuid()}-0011223344556677"):
            (self.dir / taken).mkdir(0o755)
            os.chown(self.dir / taken, 65534, -1)
        pages = [_checkpoint_drain.Page(str(self.dir)) for _ in range(2)]
        beside = list(self.dir.glob("gpuio-*/*"))
        self.assertEqual([file.name for file in beside], [str(os.getpid())])
        self.assertEqual(beside[0].parent.stat().st_uid, os.geteuid())
        pages[-1].remove()
        self.assertEqual(list(self.dir.glob("gpuio-*/*")), [])

    @unittest.skipUnless("GPUIO_PROGRAM" in os.environ, "no program gpuio was named")
    def test_top_and_prometheus_show_what_is_saved(self):
        def printed(*words):
            return subprocess.run(
                [os.environ["GPUIO_PROGRAM"], *words], timeout=HANG_S, check=True,
                capture_output=True, env={**os.environ, "GPUIO_PAGES": str(self.dir)}).stdout

        def read(*words):
            return json.loads(printed(*words, "--format", "json"))

        def shown():
            devices = read("top", "--interval", "100ms", "--count", "1")["devices"]
            return [one for one in devices if one["kind"] == "checkpoint"]

        ours, theirs = socket.socketpair()
        pages = memoryview(bytearray(b"7" * 8192))
        # One of a process that was killed, and had the number that this one has now.
        _checkpoint_drain.Page(str(self.dir))
        page = _checkpoint_drain.Page(str(self.dir))
        drain = _checkpoint_drain.Drain(theirs, pages, True, page)
        self.assertEqual(shown(), [])
        where = self.dir / "saves"
        where.mkdir()

        def save(nth, name, ranks, *files):
            drain.take({"op": "save", "id": nth, "directory": str(where / name), "rank": ranks - 1,
                        "draft": str(where / f".{name}"), "world": ranks, "survive": False,
                        "bytes": 9000})
            for file in files:
                drain.take({"op": "file", "id": nth, "name": file, "at": 0, "bytes": 4500})
                drain.step(drain.work.get()), drain.step(drain.work.get())

        save(1, "step-1", 1, "a")
        (one,) = shown()
        self.assertEqual((one["device"], one["about"]), (str(where), "step-1: writing"))
        found = {name: one["figures"][name] for name in
                 ("save_bytes", "save_staged_bytes", "save_written_bytes", "ranks", "under_way")}
        self.assertEqual(list(found.values()), [9000, 4500, 4500, 1, 1])
        stats = read("stats", str(os.getpid()))
        self.assertEqual((stats["saves"]["state"], stats["saves"]["all_written_bytes"]),
                         ("writing", 4500))
        self.assertIsNone(stats["write"])
        self.assertEqual(stats["saves"]["written_bytes_per_s"], 0, "a rate without an interval")
        why = json.dumps(read("why", str(os.getpid())))
        self.assertIn("it writes saves of gpuio.checkpoint, 4.39 KiB until now", why)
        # As the trainer whose drain this process would be.
        line = f"gpuio stats {os.getpid()} (its drain of gpuio.checkpoint; "
        self.assertIn(line, " ".join(printed("why", str(os.getppid())).decode().split()))
        self.assertEqual(read("stats", str(os.getppid()))["pid"], os.getpid())
        words = [os.environ["GPUIO_PROGRAM"], "gds_stats", "-p", str(os.getpid())]
        refused = subprocess.run(words, capture_output=True, timeout=HANG_S,
                                 env={**os.environ, "GPUIO_PAGES": str(self.dir)})
        self.assertEqual(refused.returncode, 3, refused)
        drain.take({"op": "end", "id": 1, "manifest": {}, "extras": {}})
        drain.step(drain.work.get())
        self.assertEqual(shown()[0]["about"], "step-1: complete")
        with mock.patch.object(_checkpoint_drain.os, "pwrite", lambda *_: self.raised(errno.EIO)):
            save(2, "step-\x1b2", 2, "a")
        (one,) = shown()
        self.assertEqual(one["device"], f"{where} rank 1")
        self.assertEqual(one["about"], "step-?2: failed, rank 1 of 2; last error: [Errno 5] "
                         "Input/output error")
        self.assertEqual(one["figures"]["under_way"], 0)
        page.remove()
        self.assertEqual(shown(), [])
        ours.close(), theirs.close()

    @staticmethod
    def raised(code):
        raise OSError(code, os.strerror(code))

    def test_a_save_that_meets_a_dead_drain_names_its_checkpoint(self):
        checkpoint.prepare({})
        drain = checkpoint._saver.drain
        os.kill(drain.process.pid, signal.SIGSTOP)
        drain.link.shutdown(socket.SHUT_WR)
        with self.assertRaises(gpuio.GpuioError) as caught:
            checkpoint.save(state(), self.dir / "lost")
        drain.process.kill()
        words = str(caught.exception)
        self.assertEqual(caught.exception.errno, errno.EPIPE, words)
        self.assertIn(f"the checkpoint {self.dir}/lost was not written: the drain process", words)
        self.assertIn("Nothing of that name exists", words)

    def test_a_drain_that_is_killed_is_an_error_and_the_next_save_has_a_new_one(self):
        checkpoint.prepare({})
        process = checkpoint._saver.drain.process
        os.kill(process.pid, signal.SIGSTOP)
        handle = checkpoint.save(state(), self.dir / "lost")
        process.kill()
        self.fails(handle, errno.EPIPE)
        checkpoint.save(state(), self.dir / "next").wait()
        self.assertEqual(os.listdir(self.dir), ["next"])

    def test_a_save_survives_its_trainer_where_it_may(self):
        program = (
            "import os, sys, signal, numpy\nfrom gpuio import checkpoint\n"
            "checkpoint.configure(limit=4 << 20)\ncheckpoint.prepare({})\n"
            "drain = checkpoint._saver.drain.process.pid\nos.kill(drain, signal.SIGSTOP)\n"
            "checkpoint.save({'x': numpy.zeros(999)}, sys.argv[1], survive=sys.argv[2] == 'yes')\n"
            "print(drain, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
        )
        for survive in ("yes", "no"):
            done = python(program, self.dir / survive, survive)
            drain = int(done.stdout)
            os.kill(drain, signal.SIGCONT)
            ended(drain)
        self.assertEqual(os.listdir(self.dir), ["yes"])
        self.assertEqual(checkpoint.verify(self.dir / "yes"), (1, 7992))


def ended(pid):
    """Waits for the end of a process that is no child of this one."""
    began = time.monotonic()
    while time.monotonic() - began < HANG_S:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    return
        except OSError:
            return
        time.sleep(0.005)
    raise AssertionError(f"process {pid} does not end")


def drains(trainer):
    """The drains of a process, which they have in their words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if _checkpoint_drain.__file__.encode() in words and words[-4] == str(trainer).encode():
            found.append(int(pid))
    return found


class Kills(Case):
    def test_what_is_complete_is_whole_whoever_is_killed_and_when(self):
        chosen = random.Random(os.urandom(8))
        for nth in range(KILLS):
            victims = ("trainer", "drain", "both")[nth % 3]
            survive = nth // 3 % 2 == 0
            self.one(self.dir / str(nth), victims, survive, chosen.random() ** 2 * 0.3)

    def one(self, where, victims, survive, pause):
        where.mkdir()
        words = [sys.executable, "-c", TRAINER, str(where), "yes" if survive else "no"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as trainer:
            drain = int(trainer.stdout.readline().split()[1])
            time.sleep(pause)
            if victims in ("drain", "both"):
                os.kill(drain, signal.SIGKILL)
            if victims == "drain":
                # It goes on with a new one.
                time.sleep(pause / 2)
            trainer.kill()
            said = trainer.stdout.read()
        for drain in drains(trainer.pid):
            ended(drain)
        whole = [int(line.split()[1]) for line in said.splitlines() if line.startswith("whole")]
        began = time.monotonic()
        while True:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                checkpoint.clean(where)
            names = os.listdir(where)
            # One that was killed just before it got its name is whole, and stays.
            if sum(name.startswith(".") for name in names) == len(said):
                break
            self.assertLess(time.monotonic() - began, HANG_S, names)
        found = sorted(int(name.rpartition("-")[2]) for name in names if name[0] != ".")
        self.assertLessEqual(set(whole), set(found), (victims, said))
        for step in found:
            directory = where / f"step-{step:03}"
            self.assertEqual(checkpoint.verify(directory).tensors, 2)
            one = checkpoint.load(directory, as_="numpy")
            self.assertTrue((one["a"] == step).all() and one["step"] == step, (victims, step))
        if found:
            # The newest by the manifest's own time.
            self.assertEqual(checkpoint.latest(where), str(where / f"step-{found[-1]:03}"))
        shutil.rmtree(where)


@unittest.skipUnless(HAS_TORCH, "SKIPPED: no PyTorch here")
class Torch(Case):
    def test_a_loop_and_distributed_checkpoint(self):
        import torch
        import torch.distributed.checkpoint as dcp

        model = torch.nn.Linear(10, 4).to(torch.bfloat16)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(2, 10, dtype=torch.bfloat16)).sum().backward()
        optimizer.step()
        both = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        checkpoint.save(both, self.dir / "loop").wait()
        loaded = checkpoint.load(self.dir / "loop")
        optimizer.load_state_dict(loaded["optimizer"])
        self.assertTrue(torch.equal(loaded["model"]["weight"], model.weight))
        have = {"w": torch.arange(12.0).reshape(3, 4), "n": 5}
        writer = checkpoint.Writer(self.dir / "dcp")
        dcp.save(have, storage_writer=writer, no_dist=True)
        writer.wait()
        fresh = {"w": torch.zeros(3, 4), "n": 0}
        dcp.load(fresh, storage_reader=checkpoint.Reader(self.dir / "dcp"), no_dist=True)
        self.assertTrue(torch.equal(fresh["w"], have["w"]) and fresh["n"] == 5)


if __name__ == "__main__":
    unittest.main()
