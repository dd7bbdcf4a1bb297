"""Files of safetensors: what is taken and what is refused, and why."""

import ctypes
import importlib.util
import json
import os
import re
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import gpuio
from gpuio import _safetensors

CASES = Path(__file__).parents[2] / "crates/base/src/safetensors/cases.txt"
HAS_REFERENCE = importlib.util.find_spec("safetensors") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None


def expanded(text):
    """``<ff>`` as a byte, ``<TEXT*3>`` as TEXT three times."""
    parts = b""
    for before, inside in re.findall(r"([^<]*)(?:<([^>]*)>)?", text):
        what, _, times = inside.rpartition("*") if "*" in inside else (inside, "", "1")
        one = bytes.fromhex(what) if re.fullmatch("[0-9a-f]{2}", what) else what.encode()
        parts += before.encode() + one * int(times)
    return parts


def cases():
    for line in CASES.read_text().split("\n"):
        if line and not line.startswith("#"):
            taken, data, header = line.split("\t", 2)
            yield taken, bytes(i * 7 % 251 for i in range(int(data))), header


class Counted(unittest.TestCase):
    @unittest.skipUnless("GPUIO_PROGRAM" in os.environ, "no program gpuio was named")
    def test_stats_show_what_the_loader_read(self):
        def read():
            words = [os.environ["GPUIO_PROGRAM"], "stats", str(os.getpid()), "--format", "json"]
            return json.loads(subprocess.check_output([*words, "-l", "3"]))

        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "data")
            path.write_bytes(bytes(300_000))
            with gpuio.Memory("cuda", 300_000) as memory:
                memory.read(path)
                before = read()
                memory.read(path)
            after = read()
        self.assertEqual(after["read"]["bytes"] - before["read"]["bytes"], 300_000)
        if os.environ.get("GPUIO_CUFILE_DRIVER") == "software":
            self.assertIn("software", [way["pci"] for way in after["ways"]])
        self.assertIsNone(after["files_opened"])
        # A child that ends by exit(3) has its parent's page, and leaves it alone.
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).exit(0)
        os.waitpid(child, 0)
        self.assertEqual(read()["threads"], after["threads"])


class Table(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = Path(scratch.name) / "model.safetensors"

    def file(self, header, data=b"", length=None):
        length = len(header) if length is None else length
        self.path.write_bytes(struct.pack("<Q", length) + header + data)
        return self.path

    def test_each_row_of_the_table_is_taken_or_refused(self):
        count = 0
        for taken, data, text in cases():
            header = expanded(text)
            path = self.file(header, data)
            for device in ("cpu", "cuda"):
                if taken != "yes":
                    with self.assertRaisesRegex(ValueError, "no whole file of safetensors: .*offset",
                                                msg=text):
                        gpuio.safetensors(path, device)
                    continue
                loaded = gpuio.safetensors(path, device)
                entries = json.loads(header)
                self.assertEqual(loaded.metadata, entries.pop("__metadata__", None) or {}, text)
                self.assertEqual(set(loaded), set(entries), text)
                for name, about in entries.items():
                    about = about if isinstance(about, dict) else {"shape": about[1],
                                                                   "data_offsets": about[2]}
                    begin, end = about["data_offsets"]
                    self.assertEqual(loaded[name].tobytes(), data[begin:end], text)
                    self.assertEqual(loaded[name].shape, tuple(about["shape"]), text)
                self.assertEqual(loaded.moved.bytes, len(data))
            count += 1
        self.assertGreater(count, 200)

    @unittest.skipUnless(HAS_REFERENCE, "SKIPPED: no safetensors here")
    def test_the_formats_own_library_says_the_same(self):
        import safetensors

        version = [int(part) for part in safetensors.__version__.split(".")[:2]]
        if version < [0, 8]:
            self.skipTest(f"SKIPPED: safetensors {safetensors.__version__} is older than 0.8")
        for taken, data, text in cases():
            try:
                safetensors.deserialize(self.file(expanded(text), data).read_bytes())
                said = True
            except safetensors.SafetensorError:
                said = False
            self.assertEqual(said, taken != "no", text)

    def test_no_read_goes_on_after_ctrl_c(self):
        went_on, begun = [], threading.Event()

        def slow(parts):
            begun.set()
            time.sleep(0.1)
            went_on.append(len(parts))
            return [0, 0, 0, 0]

        real = threading.Thread.join
        pressed = iter([KeyboardInterrupt, KeyboardInterrupt])

        def join(thread, *more):
            for one in pressed:
                raise one
            real(thread, *more)

        library = mock.Mock(read_parts=slow)
        with mock.patch.object(_safetensors, "library", lambda: library):
            reads = _safetensors._Reads([])
            reads.add([])
            begun.wait()
            with mock.patch.object(threading.Thread, "join", join):
                with self.assertRaises(KeyboardInterrupt):
                    reads.end()
        self.assertEqual((went_on, reads.is_alive()), ([0], False))

    def test_other_files_are_called_by_their_name(self):
        for content, why in [
            (b"", "the file is empty"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n", "git lfs pull"),
            (b'{"weight_map": {"a": "b.safetensors"}}', "index of a model's files"),
            (b"<!DOCTYPE html><html></html>", "download the model again"),
            (b"GGUF" + bytes(100), "GGUF"),
            (b"PK\x03\x04" + bytes(4) + b"\x01" * 100, "ZIP archive, as torch.save"),
            (b"\x80\x02}q\x00X\x01\x00\x00" + bytes(90), "pickle"),
            (struct.pack("<Q", 132_000_000), "132000000 bytes, and the format allows 100000000"),
        ]:
            self.path.write_bytes(content)
            with self.assertRaisesRegex(ValueError, f"model.safetensors: offset .*{why}"):
                gpuio.safetensors(self.path, "cpu")
        with self.assertRaisesRegex(gpuio.GpuioError, "no regular file"):
            gpuio.safetensors(os.devnull, "cpu")
        with self.assertRaises(FileNotFoundError):
            gpuio.safetensors(self.path.with_name("gone"), "cpu")

    def test_a_directory_and_its_index_are_the_files_of_a_model(self):
        def part(name, dtype, data):
            size = {"dtype": dtype, "shape": [len(data) // 2], "data_offsets": [0, len(data)]}
            self.path = self.path.with_name(f"{name}.safetensors")
            return self.file(json.dumps({name: size}).encode(), data).name

        place = self.path.parent
        with self.assertRaisesRegex(ValueError, "has no .*safetensors"):
            gpuio.safetensors(place, "cpu")
        files = {"a": part("a", "F16", bytes(range(8))), "b": part("b", "BF16", b"\0\x40\x80\x3f")}
        index = place / "model.safetensors.index.json"
        for _ in range(2):
            for path in [place, *([index] if index.exists() else [])]:
                loaded = gpuio.safetensors(path, "cpu")
                self.assertEqual({name: loaded[name].shape for name in loaded}, {"a": (4,), "b": (2,)})
                self.assertEqual((loaded["a"].tobytes(), loaded.device), (bytes(range(8)), "cpu"))
                self.assertEqual(loaded.moved.bytes, 12)
                self.assertIn(": 2 tensors on cpu, ", repr(loaded))
                one = gpuio.safetensors(place / files["a"], "cpu")
                self.assertIn(": 1 tensor on cpu, ", repr(one))
            index.write_text(json.dumps({"weight_map": files}))
        try:
            loaded["b"].numpy()
        except TypeError as error:
            import numpy

            words = re.search(r"\(numpy.*shape\)", str(error)).group()
            self.assertEqual(list(eval(words, {"numpy": numpy, "t": loaded["b"]})), [2.0, 1.0])
        else:
            self.fail("NumPy has bfloat16: say so in _memory.py")
        index.write_text(json.dumps({"weight_map": {"a": "../a.safetensors"}}))
        with self.assertRaisesRegex(ValueError, "no file beside it"):
            gpuio.safetensors(index, "cpu")
        index.write_text(json.dumps({"weight_map": {**files, "c": "b.safetensors"}}))
        with self.assertRaisesRegex(ValueError, "b.safetensors lacks c, which the index names"):
            gpuio.safetensors(index, "cpu")
        index.write_text(json.dumps({"weight_map": {**files, "c": "c.safetensors"}}))
        with self.assertRaisesRegex(FileNotFoundError, "names c.safetensors, which is not beside"):
            gpuio.safetensors(place, "cpu")
        index.unlink()
        (place / "again.safetensors").write_bytes((place / "a.safetensors").read_bytes())
        with self.assertRaisesRegex(ValueError, "has 'again'|has 'a'"):
            gpuio.safetensors(place, "cpu")

    def test_a_type_that_others_lack_is_an_error_of_its_tensor_alone(self):
        entries, data = {}, bytes(range(64))
        for name, dtype, end in [("i", "I32", 32), ("f4", "F4", 36), ("f6", "F6_E2M3", 42)]:
            begin = sum(one["data_offsets"][1] - one["data_offsets"][0] for one in entries.values())
            entries[name] = {"dtype": dtype, "shape": [2, 4], "data_offsets": [begin, end]}
        loaded = gpuio.safetensors(self.file(json.dumps(entries).encode(), data[:42]), "cpu")
        self.assertEqual([loaded[name].dtype for name in entries],
                         ["int32", "float4_e2m1fn", "float6_e2m3fn"])
        self.assertEqual([loaded[name].itemsize for name in entries], [4, None, None])
        self.assertEqual(loaded["i"].numpy().tobytes(), data[:32])
        self.assertEqual(loaded["f4"].tobytes(), data[32:36])
        with self.assertRaisesRegex(TypeError, "NumPy has no float4_e2m1fn"):
            loaded["f4"].numpy()
        with self.assertRaisesRegex(TypeError, "tensor 'f4': NumPy has no"):
            loaded.numpy()
        with self.assertRaises(BufferError):
            loaded["f4"].__dlpack__()
        with self.assertRaisesRegex(ValueError, "is not in"):
            loaded["f4"].memory.tensor("float4_e2m1fn", [3])

    @unittest.skipUnless(HAS_TORCH, "SKIPPED: no PyTorch here")
    def test_pytorch_has_the_types_that_it_has(self):
        import torch

        names = {"F4": "float4_e2m1fn_x2", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
                 "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
                 "F8_E8M0": "float8_e8m0fnu", "F6_E2M3": "none", "F6_E3M2": "none"}
        for dtype, name in names.items():
            size = 4 if dtype == "F4" else 6 if dtype.startswith("F6") else 8
            header = {"w": {"dtype": dtype, "shape": [2, 4], "data_offsets": [0, size]}}
            path = self.file(json.dumps(header).encode(), bytes(range(size)))
            tensor = gpuio.safetensors(path, "cpu")["w"]
            if not hasattr(torch, name):
                with self.assertRaisesRegex(TypeError, r"this PyTorch .* has no float"):
                    tensor.torch()
                continue
            made = tensor.torch()
            self.assertEqual(made.dtype, getattr(torch, name))
            self.assertEqual(made.view(torch.uint8).numpy().tobytes(), bytes(range(size)))


if __name__ == "__main__":
    unittest.main()
