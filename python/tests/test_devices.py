"""Files of safetensors on several GPUs: whole copies, and shards. Runs again on two software GPUs."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import numpy

import gpuio

KIB = 1 << 10
MIB = 1 << 20


def written(path, tensors):
    """A file of safetensors, by its format's page alone."""
    header, data = {}, b""
    for name, array in tensors.items():
        begin, data = len(data), data + array.tobytes()
        dtype = {"float32": "F32", "float16": "F16", "uint8": "U8"}[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def sample(seed):
    random = numpy.random.default_rng(seed)
    return {
        f"{seed}.matrix": random.standard_normal((300, 64, 2)).astype(numpy.float32),
        f"{seed}.long": random.integers(0, 255, 400 * KIB).astype(numpy.uint8),
        f"{seed}.odd": random.integers(0, 255, 7).astype(numpy.uint8),
        f"{seed}.half": random.standard_normal((1000, 33)).astype(numpy.float16),
        f"{seed}.wide": random.integers(0, 255, (3, MIB)).astype(numpy.uint8),
        f"{seed}.none": numpy.zeros((0, 5), dtype=numpy.float16),
    }


class OneProcess(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)
        for name, value in [("_MOST", 720 * KIB), ("_SHARE", 320 * KIB)]:
            smaller = mock.patch.object(gpuio._safetensors, name, value)
            smaller.start()
            self.addCleanup(smaller.stop)
        self.right = sample(1)
        self.path = written(self.dir / "a.safetensors", self.right)

    def same(self, loaded, right):
        self.assertEqual(set(loaded), set(right))
        for name, array in right.items():
            self.assertEqual(loaded[name].shape, array.shape, name)
            self.assertTrue(loaded[name].tobytes() == array.tobytes(), name)

    def test_several_files_are_one_mapping(self):
        more = sample(2)
        paths = [self.path, written(self.dir / "b.safetensors", more)]
        for device in ("cpu", 0):
            loaded = gpuio.safetensors(paths, device)
            self.same(loaded, {**self.right, **more})
            self.assertEqual(
                loaded.moved.bytes, sum(a.nbytes for a in [*self.right.values(), *more.values()])
            )
        with self.assertRaisesRegex(ValueError, "'1.matrix', and a file before it has one too"):
            gpuio.safetensors([self.path, self.path], 0)

    def test_a_tensor_that_is_kept_keeps_its_group_alone(self):
        many = {str(nth): numpy.full(50 * KIB, nth, dtype=numpy.uint8) for nth in range(20)}
        many["big"] = numpy.zeros(800 * KIB, dtype=numpy.uint8)
        loaded = gpuio.safetensors(written(self.path, many), "cpu")
        self.same(loaded, many)
        memories = {id(tensor.memory): tensor.memory.nbytes for tensor in loaded.values()}
        self.assertEqual(sorted(memories.values()), [300 * KIB, 700 * KIB, 800 * KIB])

    def test_a_shard_has_what_it_asks_for(self):
        shard = {
            "1.half": (slice(10, 900), slice(3, 20)),
            "1.matrix": (slice(None), slice(60, 64)),
            "1.wide": (slice(None), slice(5, 5 + (300 << 10))),
            "1.long": slice(-KIB, None),
            "1.odd": ...,
            "1.none": slice(0, 0),
        }
        (loaded,) = gpuio.safetensors(self.path, devices=[0], shards=[shard])
        right = {
            name: numpy.ascontiguousarray(self.right[name][() if index is ... else index])
            for name, index in shard.items()
        }
        self.same(loaded, right)
        self.assertEqual(list(loaded), list(shard))
        self.assertEqual(loaded.moved.bytes, sum(array.nbytes for array in right.values()))
        for wrong, why in [
            ({"gone": ...}, "no file has tensor 'gone'"),
            ({"1.half": slice(0, 10, 2)}, "take steps of 1"),
            ({"1.half": 3}, "is not ..., a slice of rows"),
            ({"1.odd": (slice(0, 1), slice(0, 1))}, "is not ..., a slice of rows"),
        ]:
            with self.assertRaisesRegex(ValueError, why):
                gpuio.safetensors(self.path, devices=[0], shards=[wrong])

    def test_devices_are_gpus_each_once(self):
        for wrong in ([], ["cpu"], [0, "cuda:0"]):
            with self.assertRaises(ValueError):
                gpuio.safetensors(self.path, devices=wrong)
        for more in ({"shards": [{}]}, {"devices": [0], "shards": []}):
            with self.assertRaises(ValueError):
                gpuio.safetensors(self.path, **more)
        for device in ("cpu", "cuda:1", 0):
            with self.assertRaisesRegex(ValueError, "exclude one another"):
                gpuio.safetensors(self.path, device, devices=[0])
        with self.assertRaisesRegex(gpuio.GpuioError, "GPU 99"):
            gpuio.safetensors(self.path, devices=[99])


@unittest.skipUnless(gpuio.gpus().count > 1, "runs again with two GPUs")
class TwoGpus(OneProcess):
    def test_each_gpu_gets_all_and_each_byte_is_read_once(self):
        total = sum(array.nbytes for array in self.right.values())
        apart = os.environ.get("GPUIO_SOFT_PEER") == "0"
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            loaded = gpuio.safetensors(self.path, devices=["cuda:0", 1])
        self.assertEqual([one.device for one in loaded], ["cuda:0", "cuda:1"])
        for one in loaded:
            self.same(one, self.right)
            self.assertEqual(one.moved.bytes, 2 * total if apart else total)
        words = [str(one.message) for one in said]
        self.assertEqual(len(words), apart, words)
        if apart:
            self.assertIn("GPU 0 and GPU 1 can't reach each other's memory", words[0])
            self.assertEqual(said[0].filename, __file__)

    def test_halves_go_to_two_gpus(self):
        halves = [{"1.matrix": slice(0, 150), "1.long": ...}, {"1.matrix": slice(150, 300)}]
        loaded = gpuio.safetensors(self.path, devices=[1, 0], shards=halves)
        self.assertEqual([one.device for one in loaded], ["cuda:1", "cuda:0"])
        self.same(loaded[0], {"1.matrix": self.right["1.matrix"][:150],
                              "1.long": self.right["1.long"]})
        self.same(loaded[1], {"1.matrix": self.right["1.matrix"][150:]})

    def test_columns_go_to_two_gpus_by_whole_rows(self):
        random = numpy.random.default_rng(4)
        right = {"rows": random.integers(0, 255, (2600, 8 * KIB)).astype(numpy.uint8),
                 "half": self.right["1.half"]}
        path = written(self.dir / "columns.safetensors", right)
        cuts = {"rows": 3 * KIB, "half": 20}
        shards = [{name: (slice(None), slice(0, cut)) for name, cut in cuts.items()},
                  {name: (slice(None), slice(cut, None)) for name, cut in reversed(cuts.items())}]
        loaded = gpuio.safetensors(path, devices=[0, 1], shards=shards)
        self.same(loaded[0], {name: right[name][:, :cut] for name, cut in cuts.items()})
        self.same(loaded[1], {name: right[name][:, cut:] for name, cut in cuts.items()})
        moved = loaded[0].moved
        total = sum(array.nbytes for array in right.values())
        self.assertEqual((moved.bytes, moved.cached + moved.direct, moved.gpu), (total,) * 3)


@unittest.skipUnless(gpuio.gpus() == (1, True), "once, on the software GPU")
class Again(unittest.TestCase):
    def test_on_two_software_gpus_with_and_without_peer_access(self):
        # The third: rows have no memory beside the tensors, so each is read by itself.
        columns = "TwoGpus.test_columns_go_to_two_gpus_by_whole_rows"
        for which, variables in [("TwoGpus", {"GPUIO_SOFT_PEER": "1"}),
                                 ("TwoGpus", {"GPUIO_SOFT_PEER": "0"}),
                                 (columns, {"GPUIO_SOFT_MEM": str(24 * MIB)})]:
            environment = {**os.environ, "GPUIO_SOFT_GPUS": "2", **variables}
            command = [sys.executable, "-m", "unittest", "-q", f"{Path(__file__).stem}.{which}"]
            done = subprocess.run(command, cwd=Path(__file__).parent, env=environment, text=True,
                                  stderr=subprocess.PIPE, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
