"""The module as its users use it, on gpuio's software GPU.

  GPUIO_LIBGPUIO=…/libgpuio.so GPUIO_CUFILE_DRIVER=…/libgpuio_softgpu.so GPUIO_PROGRAM=…/gpuio \
    python3 -m unittest discover -s python/tests

Needs NumPy; tests of data frames need pandas, and those of PyTorch it, and skip without.
"""

import errno
import gc
import importlib.util
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
from gpuio import checkpoint

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_PANDAS = importlib.util.find_spec("pandas") is not None
GENERATOR = numpy.random.default_rng(1)


def written(path, tensors, metadata=None):
    """A file of safetensors, written by its format's page alone."""
    names = {"float32": "F32", "int64": "I64", "uint8": "U8", "bool": "BOOL", "float16": "F16",
             "int16": "I16", "complex64": "C64"}
    header, data = {}, b""
    for name, array in tensors.items():
        end = len(data) + array.nbytes
        kind = names[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape),
                        "data_offsets": [len(data), end]}
        data += array.tobytes()
    if metadata:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


class Files(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)

    def sample(self):
        return {
            "weight": GENERATOR.standard_normal((300, 257), dtype=numpy.float32),
            "mask": GENERATOR.integers(0, 2, (7, 3)).astype(bool),
            "ids": GENERATOR.integers(-(2**60), 2**60, (1000,)),
            "one": numpy.float32(1.5).reshape(()),
            "none": numpy.zeros((0, 4), dtype=numpy.int16),
            "odd": GENERATOR.integers(0, 255, (5,)).astype(numpy.uint8),
            "half": GENERATOR.standard_normal((9, 9)).astype(numpy.float16),
        }


class Safetensors(Files):
    def test_the_bytes_are_those_of_the_file_on_each_device(self):
        right = self.sample()
        path = written(self.dir / "model.safetensors", right, {"format": "np"})
        for device, name in [("cpu", "cpu"), ("cuda", "cuda:0"), (0, "cuda:0")]:
            loaded = gpuio.safetensors(path, device)
            self.assertEqual((loaded.device, loaded.metadata), (name, {"format": "np"}))
            self.assertEqual(set(loaded), set(right))
            total = sum(array.nbytes for array in right.values())
            self.assertEqual(loaded.moved.bytes, total)
            self.assertEqual(loaded.moved.gpu, 0 if device == "cpu" else total)
            self.assertEqual(loaded.moved.cached + loaded.moved.direct, total)
            for key, array in loaded.numpy().items():
                self.assertEqual(array.dtype, right[key].dtype, key)
                numpy.testing.assert_array_equal(array, right[key], err_msg=key)
                self.assertEqual(loaded[key].shape, right[key].shape)

    def test_a_tensor_goes_to_others_by_dlpack_and_outlives_what_made_it(self):
        right = self.sample()
        loaded = gpuio.safetensors(written(self.dir / "a.safetensors", right), "cpu")
        taken = numpy.from_dlpack(loaded["weight"])
        unused = loaded["weight"].__dlpack__()
        plain = loaded["ids"].numpy()
        self.assertEqual(loaded["weight"].__dlpack_device__(), (1, 0))
        del loaded, unused
        gc.collect()
        numpy.testing.assert_array_equal(taken, right["weight"])
        numpy.testing.assert_array_equal(plain, right["ids"])
        self.assertEqual(gpuio.Memory(0, 64).tensor("uint8", [64]).__dlpack_device__(), (2, 0))
        with self.assertRaises(BufferError):
            gpuio.Memory("cpu", 64).tensor("uint8", [64]).__dlpack__(copy=True)

    def test_a_consumer_that_refuses_a_tensor_says_why_and_the_tensor_is_freed(self):
        for size in (64, 128):
            tensor = gpuio.Memory(0, size).tensor("uint8", [size])
            # NumPy drops the capsule while its own error is pending.
            with self.assertRaises((BufferError, RuntimeError)) as refused:
                numpy.from_dlpack(tensor)
            self.assertNotIsInstance(refused.exception, SystemError)
            self.assertIn("device", str(refused.exception).lower())

    def test_a_capsule_that_nobody_takes_frees_its_tensor(self):
        for _ in range(6):
            # More than five of them are more than the software GPU has.
            capsule = gpuio.Memory(0, 1 << 30).tensor("uint8", [1 << 30]).__dlpack__()
            self.assertIn("dltensor", repr(capsule))
            del capsule

    def test_nothing_falls_back_unless_asked_and_then_a_warning_says_so(self):
        right = self.sample()
        path = written(self.dir / "a.safetensors", right)
        with self.assertRaisesRegex(gpuio.GpuioError, "on GPU 99") as caught:
            gpuio.safetensors(path, "cuda:99")
        self.assertEqual(caught.exception.errno, 19)
        with self.assertWarnsRegex(gpuio.FallbackWarning, "not on cuda:99: .*GPU 99"):
            loaded = gpuio.safetensors(path, "cuda:99", fallback="cpu")
        self.assertEqual(loaded.device, "cpu")
        numpy.testing.assert_array_equal(loaded["weight"].numpy(), right["weight"])
        names = [f"{name}-0000{name}" for name in (1, 2, 3)]
        paths = [written(self.dir / name, {name: right["weight"]}) for name in names]
        with self.assertWarnsRegex(
            gpuio.FallbackWarning, "1-00001 and 2 more of 3 files are loaded into host memory, not"
        ):
            gpuio.safetensors(paths, "cuda:99", fallback="cpu")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gpuio.safetensors(path, "cuda:0", fallback="cpu")
        for device in ("gpu", "cuda:x", -1, "cpu:1"):
            with self.assertRaises(ValueError):
                gpuio.safetensors(path, device)
        with self.assertRaisesRegex(TypeError, "^device is .*, not True .bool.$"):
            gpuio.safetensors(path, True)


class ReadInto(Files):
    def test_any_buffer_of_the_host_and_memory_of_the_gpu(self):
        data = GENERATOR.bytes(100_000)
        path = self.dir / "data"
        path.write_bytes(data)
        array = numpy.zeros((100, 125), dtype=numpy.uint64)
        self.assertEqual(gpuio.read_into(array, path).bytes, 100_000)
        self.assertEqual(array.tobytes(), data)
        part = bytearray(1000)
        with open(path, "rb") as file:
            moved = gpuio.read_into(part, file.fileno(), 99_500)
        self.assertEqual((moved.bytes, moved.gpu), (500, 0))
        self.assertEqual(part[:500], data[99_500:])
        tensor = gpuio.Memory(0, 4096).tensor("int16", [100, 2], offset=96)
        self.assertEqual(gpuio.read_into(tensor, path, 11).gpu, 400)
        self.assertEqual(tensor.numpy().tobytes(), data[11:411])
        self.assertEqual(gpuio.read_into(numpy.zeros(0), path), (0, 0, 0, 0))
        # A place in the file and one in memory; none of the file is past its end.
        memory = gpuio.Memory("cpu", 400)
        memory.read(path, file_offset=11, nbytes=300, at=100)
        self.assertEqual(memory.copy_out(100), data[11:311])
        for past in (100_000, 200_000):
            self.assertEqual(memory.read(path, file_offset=past).bytes, 0)
            self.assertEqual(gpuio.read_into(part, path, file_offset=past).bytes, 0)

    def test_what_cannot_be_filled_is_refused(self):
        path = self.dir / "data"
        path.write_bytes(b"abc")
        read_only = numpy.zeros(3)
        read_only.flags.writeable = False
        for wrong in (b"abc", numpy.zeros((4, 4))[:, 1], read_only):
            with self.assertRaises(ValueError):
                gpuio.read_into(wrong, path)
        with self.assertRaises(ValueError):
            gpuio.read_into(bytearray(1), path, -1)
        with self.assertRaises(TypeError):
            gpuio.read_into(3, path)
        with self.assertRaisesRegex(gpuio.GpuioError, "neither|only regular"):
            gpuio.read_into(bytearray(1), os.pipe()[0])
        for read in (gpuio.Memory("cpu", 1).read, lambda path: gpuio.read_into(bytearray(1), path)):
            with self.assertRaises(IsADirectoryError):
                read(self.dir)

    def test_memory_is_given_back(self):
        data = GENERATOR.bytes(4096)
        path = self.dir / "data"
        path.write_bytes(data)
        for device in ("cpu", "cuda"):
            with gpuio.Memory(device, 4096) as memory:
                memory.read(path)
                tensor = memory.tensor("uint8", [4096])
                array = tensor.numpy()
            for use in (memory.copy_out, lambda: memory.read(path), lambda: memory.address,
                        lambda: memory.tensor("uint8", [1])):
                with self.assertRaisesRegex(ValueError, "released"):
                    use()
            # Tensors keep their bytes.
            del memory
            gc.collect()
            self.assertEqual(array.tobytes(), data)
            self.assertEqual(tensor.numpy().tobytes(), data)
            self.assertEqual(tensor.tobytes(), data)
            self.assertEqual(gpuio.read_into(tensor, path, 96).bytes, 4000)
            self.assertEqual(tensor.tobytes()[:4000], data[96:])
            if device == "cpu":
                self.assertEqual(numpy.from_dlpack(tensor).tobytes()[:4000], data[96:])
        with self.assertRaises(ValueError):
            gpuio.Memory("cpu", 10).tensor("int16", [6])
        with self.assertRaises(TypeError):
            gpuio.Memory("cpu", 10).tensor("int7", [1])
        del array, tensor

    def test_types_have_the_names_of_both_libraries(self):
        memory = gpuio.Memory("cpu", 64)

        class OfTorch:
            """What str() says of a type of PyTorch."""

            def __str__(self):
                return "torch.bfloat16"

        for given, name in [
            ("float32", "float32"), ("torch.float32", "float32"), ("f4", "float32"),
            ("<i8", "int64"), ("|b1", "bool"), ("u2", "uint16"), (OfTorch(), "bfloat16"),
            ("torch.float4_e2m1fn_x2", "float4_e2m1fn"), (numpy.float32, "float32"),
            (numpy.bool_, "bool"), (numpy.dtype("c8"), "complex64"),
        ]:
            self.assertEqual(memory.tensor(given, [2]).dtype, name, given)
        # NumPy's float has 8 bytes, and PyTorch's 4.
        for wrong in ("float", "b2", "f3", ">f4", numpy.dtype(">f4"), None, 4, object, "x_x2"):
            with self.assertRaisesRegex(TypeError, "type of elements"):
                memory.tensor(wrong, [2])

    def test_a_library_that_lacks_is_named_with_what_installs_it(self):
        loaded = gpuio.safetensors(written(self.dir / "a.safetensors", self.sample()), "cpu")
        state = {"x": numpy.ones(3)}
        checkpoint.save(state, self.dir / "one").wait()
        for module, name, calls in [
            ("torch", "PyTorch", [
                loaded.torch, loaded["weight"].torch, lambda: checkpoint.Writer,
                lambda: checkpoint.load(self.dir / "one", as_="torch"),
            ]),
            ("numpy", "NumPy", [
                loaded.numpy, loaded["weight"].numpy,
                lambda: checkpoint.load(self.dir / "one", as_="numpy"),
                lambda: checkpoint.save(state, self.dir / "two"),
            ]),
            ("safetensors", "safetensors", [gpuio.install]),
        ]:
            absent = {module: None, "torch": None}
            for call in calls:
                with mock.patch.dict(sys.modules, absent), self.assertRaisesRegex(
                    ImportError, f"needs {name}, which .* does not have: pip install {module}(; as_=|$)"
                ):
                    call()


class Gpus(unittest.TestCase):
    def test_the_software_gpu_says_what_it_is(self):
        software = os.environ.get("GPUIO_CUFILE_DRIVER", "system") != "system"
        self.assertEqual(gpuio.gpus().software, software)
        self.assertGreaterEqual(gpuio.gpus().count, 1)

    def test_errors_name_what_python_has(self):
        with self.assertRaises(gpuio.GpuioError) as caught:
            gpuio.Memory("cuda:99", 16)
        self.assertEqual((caught.exception.errno, caught.exception.exit_code), (errno.ENODEV, 3))
        self.assertNotIn("gpuio_", str(caught.exception))
        in_use = os.environ.get("GPUIO_CUFILE_DRIVER") == "software"
        other = "GPUIO_SOFT_GPUS" if in_use else "GPUIO_CUFILE_DRIVER=software"
        for word in ("memory of 16 bytes on GPU 99", 'device="cpu"', other):
            self.assertIn(word, str(caught.exception))
        with self.assertRaisesRegex(gpuio.GpuioError, "Give a path, or a descriptor that is open"):
            gpuio.read_into(bytearray(4), 987654)

    def test_the_software_gpu_is_found_beside_the_library_that_is_named(self):
        named = os.environ.get("GPUIO_LIBGPUIO", "")
        if not Path(named).with_name("libgpuio_softgpu.so").exists():
            self.skipTest("SKIPPED: no libgpuio_softgpu.so beside GPUIO_LIBGPUIO")
        script = "import gpuio\nprint(gpuio.gpus().software)"
        directory, name = os.path.split(named)
        for more in ({}, {"GPUIO_LIBGPUIO": name, "LD_LIBRARY_PATH": directory}):
            environment = {**os.environ, "GPUIO_CUFILE_DRIVER": "software", **more}
            done = subprocess.run([sys.executable, "-c", script], env=environment, text=True,
                                  stdout=subprocess.PIPE, timeout=60)
            self.assertEqual(done.stdout, "True\n", more)

    def test_without_a_driver_the_reason_is_an_error(self):
        script = ("import gpuio\nfor call in (gpuio.gpus, lambda: gpuio.Memory('cuda:0', 1)):\n"
                  "    try: call()\n    except gpuio.GpuioError as e: print(e.errno, e)")
        environment = {**os.environ, "GPUIO_CUFILE_DRIVER": "/none/libcuda.so.1"}
        done = subprocess.run([sys.executable, "-c", script], env=environment, text=True,
                              stdout=subprocess.PIPE, timeout=60)
        lines = done.stdout.splitlines()
        for line in lines:
            self.assertTrue(line.startswith("19 "), line)
            self.assertIn("no CUDA driver library could be loaded", line)
            self.assertIn("GPUIO_CUFILE_DRIVER=software takes", line)
            # There is no first GPU.
            self.assertNotIn("cuda:0", line)
        self.assertEqual(['device="cpu"' in line for line in lines], [False, True], lines)


@unittest.skipUnless(HAS_TORCH, "SKIPPED: no PyTorch here")
class Torch(Files):
    def test_tensors_share_their_bytes(self):
        import torch

        right = self.sample()
        loaded = gpuio.safetensors(written(self.dir / "a.safetensors", right), "cpu")
        for key, tensor in loaded.torch().items():
            self.assertEqual(tuple(tensor.shape), right[key].shape)
            numpy.testing.assert_array_equal(tensor.numpy(), right[key], err_msg=key)
        made = loaded.torch()
        self.assertEqual(list(made), list(loaded))
        # A change of one is none of another's: gradients need that.
        made["weight"].zero_()
        self.assertEqual({key for key, tensor in made.items() if tensor._version}, {"weight"})
        self.assertFalse(loaded["weight"].numpy().any())
        for kind in ("bfloat16", "float8_e4m3fn", "uint16", "bool"):
            tensor = gpuio.Memory("cpu", 64).tensor(kind, [4])
            if not hasattr(torch, kind):
                with self.assertRaisesRegex(TypeError, "this PyTorch .* has no"):
                    tensor.torch()
                continue
            self.assertEqual(tensor.torch().dtype, getattr(torch, kind))
        on_gpu = gpuio.safetensors(self.dir / "a.safetensors", "cuda:0")
        if gpuio.gpus().software or not torch.cuda.is_available():
            with self.assertRaisesRegex(RuntimeError, r"numpy\(\) is a copy"):
                on_gpu.torch()
        else:
            loaded = gpuio.safetensors(self.dir / "a.safetensors", "cuda:0")
            for key, tensor in loaded.torch().items():
                self.assertEqual(tensor.device, torch.device("cuda:0"))
                numpy.testing.assert_array_equal(tensor.cpu().numpy(), right[key], err_msg=key)
            filled = torch.zeros(1000, dtype=torch.int64, device="cuda")
            torch.cuda.synchronize()
            moved = gpuio.read_into(filled, self.dir / "a.safetensors", 8)
            self.assertEqual((moved.bytes, moved.gpu), (8000, 8000))
            data = (self.dir / "a.safetensors").read_bytes()
            self.assertEqual(filled.cpu().numpy().tobytes(), data[8:8008])
        path = self.dir / "data"
        path.write_bytes(bytes(range(40)))
        filled = torch.zeros(5, dtype=torch.int64)
        self.assertEqual(gpuio.read_into(filled, path).bytes, 40)
        self.assertEqual(filled.numpy().tobytes(), bytes(range(40)))
        for wrong, why in [
            (torch.zeros(4, 4).t(), "contiguous"),
            (torch.empty(4, device="meta"), "on 'meta'"),
            (torch.eye(3).to_sparse(), "dense"),
        ]:
            with self.assertRaisesRegex(ValueError, why):
                gpuio.read_into(wrong, path)


class WithoutFrames(Files):
    def test_without_pandas_there_are_rows(self):
        place = self.dir / "r.json"
        words = {"bs": "64k", "size": "1m", "runtime": "50ms", "directory": str(self.dir)}
        with mock.patch.dict(sys.modules, {"pandas": None}):
            rows = gpuio.bench(path="host", rw="randread", output=place, **words)
            self.assertEqual([(row["path"], row["direction"]) for row in rows], [("host", "read")])
            self.assertGreater(rows[0]["throughput_bytes_per_s"], 0)
            self.assertEqual(rows.attrs["record"], gpuio.record(place))
            series = gpuio.series(place)
        self.assertEqual({row["job"] for row in series}, {rows[0]["job"]})


@unittest.skipUnless(HAS_PANDAS, "SKIPPED: no pandas here")
class Frames(Files):
    def test_a_job_from_python_is_a_frame_and_its_record_too(self):
        place = self.dir / "r.json"
        words = {"bs": "64k", "size": "1m", "runtime": "50ms", "directory": str(self.dir)}
        frame = gpuio.bench(path="host,staged", gpu="software", rw="randread", output=place, **words)
        self.assertEqual(list(frame["path"]), ["host", "staged"])
        self.assertEqual(list(frame["direction"]), ["read", "read"])
        self.assertTrue((frame["throughput_bytes_per_s"] > 0).all())
        self.assertTrue((frame["gpu_software"][1:] == 1).all())
        self.assertEqual(len(frame.attrs["record"]["jobs"]), 2)
        again = gpuio.load(place)
        self.assertEqual(list(again["bytes"]), list(frame["bytes"]))
        series = gpuio.series(place)
        self.assertEqual(set(series["job"]), set(frame["job"]))
        self.assertIn("read_bytes", series)

    def test_what_the_program_refuses_is_an_error_with_its_words(self):
        for words, nearest in (({"bss": "4k"}, "argument bss; did you mean bs?"), ({"no_such": 1}, "argument no_such")):
            with self.assertRaises(gpuio.GpuioError) as raised:
                gpuio.bench(**words)
            self.assertTrue(str(raised.exception).endswith(nearest), raised.exception)
        with self.assertRaisesRegex(gpuio.GpuioError, "bs") as caught:
            gpuio.bench(bs="12q", directory=str(self.dir))
        # ENOENT is 2, too.
        self.assertEqual((caught.exception.errno, caught.exception.exit_code), (None, 2))
        with self.assertRaises(ValueError):
            gpuio.load()
        other = self.dir / "other.json"
        for text in ("[" * 100_000, "{}", "# A report"):
            other.write_text(text)
            with self.assertRaisesRegex(ValueError, "other.json is no record"):
                gpuio.record(other)
        with self.assertRaises(gpuio.GpuioError):
            gpuio.load(other)


if __name__ == "__main__":
    unittest.main()
