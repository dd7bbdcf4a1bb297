"""Numbers and arrays that C would cut, or take for something else."""

import ctypes
import os
import tempfile
import unittest
from pathlib import Path

import numpy

import gpuio
from gpuio import checkpoint
from gpuio._library import library

DATA = bytes(i * 7 % 251 for i in range(1 << 20))


class Array:
    """An array of a GPU as Numba, CuPy and PyCUDA describe it."""

    def __init__(self, memory, **given):
        self.memory = memory
        about = {"shape": (25,), "typestr": "<f4", "data": (memory.address, False), "version": 3}
        self.__cuda_array_interface__ = {**about, **given}


class Numbers(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = Path(scratch.name) / "data"
        self.path.write_bytes(DATA)

    def test_no_function_of_the_library_is_called_with_a_number_that_c_would_cut(self):
        functions = library().functions
        checked = 0
        for name, function in functions.items():
            zero = [ctypes.byref(kind()) if not isinstance(kind._type_, str) else 0
                    for kind in function.parameters.values()]
            for at, kind in enumerate(function.parameters.values()):
                if not isinstance(kind._type_, str):
                    continue
                signed = kind in (ctypes.c_int, ctypes.c_int64)
                bits = 8 * ctypes.sizeof(kind) - signed
                least = -(2**bits) if signed else 0
                for wrong in (2**bits, 2**64 + 5, least - 1, -(2**64), True, 1.5, "1", b"1",
                              numpy.float64(1), numpy.bool_(True), [1]):
                    with self.assertRaises((TypeError, ValueError), msg=f"{name} {at} {wrong!r}"):
                        function(*zero[:at], wrong, *zero[at + 1:])
                checked += 1
            with self.assertRaises(TypeError):
                function(*zero, 0)
        self.assertEqual(checked, 44)
        header = Path(__file__).parents[2] / "crates/clib/include/gpuio.h"
        words = header.read_text().replace("(", " ").replace("*", " ").split()
        self.assertLessEqual(set(functions), set(words))

    def test_numbers_beyond_64_bits_are_errors_and_not_other_numbers(self):
        memory = gpuio.Memory(0, 1 << 12)
        for wrong in (2**64, 2**64 + 5, 2**65 + 7, 2**200, -1, -(2**64) + 5):
            for use in (
                lambda: gpuio.read_into(bytearray(10), self.path, wrong),
                lambda: memory.read(self.path, wrong),
                lambda: memory.read(self.path, 0, wrong),
                lambda: memory.read(self.path, 0, 1, wrong),
                lambda: memory.copy_out(wrong),
                lambda: memory.copy_out(0, wrong),
                lambda: memory.tensor("uint8", [wrong]),
                lambda: memory.tensor("uint8", [1], wrong),
                lambda: gpuio.Memory("cpu", wrong),
                lambda: gpuio.Memory(0, wrong),
                lambda: gpuio.Memory(wrong, 1),
                lambda: gpuio.Memory(f"cuda:{wrong}", 1),
                lambda: gpuio.safetensors(self.path, wrong),
            ):
                with self.assertRaises(ValueError):
                    use()
        with self.assertRaises(ValueError):
            gpuio.Memory("cpu", 2**64 + 16)
        with self.assertRaises(gpuio.GpuioError):
            gpuio.Memory("cpu", 2**64 - 1)
        self.assertEqual(gpuio.read_into(bytearray(4), self.path, numpy.uint64(8)).bytes, 4)
        self.assertEqual(gpuio.Memory(numpy.int32(0), numpy.int64(16)).device, "cuda:0")

    def test_what_is_no_whole_number_is_none(self):
        memory = gpuio.Memory("cpu", 64)
        for wrong in (1.0, True, numpy.bool_(True), numpy.float32(1), "1", None, [1]):
            for use in (
                lambda: gpuio.read_into(bytearray(10), self.path, wrong),
                lambda: memory.read(self.path, wrong),
                lambda: memory.tensor("uint8", [wrong]),
                lambda: gpuio.Memory("cpu", wrong),
            ):
                with self.assertRaises(TypeError):
                    use()

    def test_an_argument_of_a_wrong_type_is_named(self):
        memory = gpuio.Memory("cpu", 64)
        for name, use in (
            ("path", gpuio.load), ("path", gpuio.record), ("path", gpuio.series),
            ("argument", gpuio.bench), ("rw", lambda wrong: gpuio.bench(rw=wrong)),
            ("output", lambda wrong: gpuio.bench(output=wrong)),
            ("path", gpuio.safetensors), ("device", lambda wrong: gpuio.safetensors("x", wrong)),
            ("devices", lambda wrong: gpuio.safetensors("x", devices=wrong)),
            ("fallback", lambda wrong: gpuio.safetensors("x", fallback=wrong)),
            ("device", lambda wrong: gpuio.Memory(wrong, 1)),
            ("nbytes", lambda wrong: gpuio.Memory("cpu", wrong)),
            ("dtype", lambda wrong: memory.tensor(wrong, [1])),
            ("shape", lambda wrong: memory.tensor("uint8", wrong)),
            ("source", lambda wrong: memory.read(wrong)),
            ("tensor", lambda wrong: gpuio.read_into(wrong, "x")),
            ("device", gpuio.Rings), ("device", gpuio.install),
            ("limit", lambda wrong: checkpoint.configure(limit=wrong)),
            ("direct", lambda wrong: checkpoint.configure(direct=wrong)),
            ("saves", lambda wrong: checkpoint.prepare({}, wrong)),
            ("directory", lambda wrong: checkpoint.save({}, wrong)),
            ("token", lambda wrong: checkpoint.save({}, "x", token=wrong)),
            ("rank", lambda wrong: checkpoint.save({}, "x", rank=wrong)),
            ("directory", checkpoint.verify), ("directory", checkpoint.load),
            ("as_", lambda wrong: checkpoint.load("x", as_=wrong)),
            ("directory", checkpoint.latest), ("directory", checkpoint.clean),
        ):
            words = f"^{name} is .*, not <object.* .object.$"
            with self.assertRaisesRegex(TypeError, words, msg=name):
                use(object())

    def test_a_file_is_a_path_or_a_descriptor(self):
        with open(self.path, "rb") as file:
            for wrong in (numpy.uint8(65), numpy.int64(file.fileno()), True, False, 3.0, None,
                          bytearray(b"data"), memoryview(b"data"), file):
                with self.assertRaises(TypeError):
                    gpuio.read_into(bytearray(10), wrong)
                with self.assertRaises(TypeError):
                    gpuio.Memory("cpu", 10).read(wrong)
            for right in (self.path, str(self.path), os.fsencode(self.path), file.fileno()):
                self.assertEqual(gpuio.read_into(bytearray(10), right).bytes, 10)
        for wrong in (2**31, -(2**31) - 1, 2**32 + 1):
            with self.assertRaises(ValueError):
                gpuio.read_into(bytearray(10), wrong)
        with self.assertRaises(gpuio.GpuioError):
            gpuio.read_into(bytearray(10), -1)

    def test_arrays_of_a_gpu_are_taken_if_they_are_contiguous(self):
        memory = gpuio.Memory(0, 1 << 12)
        for right in (
            {},
            {"strides": None},
            {"strides": (4,)},
            {"shape": (5, 5), "strides": (20, 4)},
            {"shape": (5, 1, 5), "strides": (20, 999, 4)},
            {"shape": (1,), "strides": (64,), "typestr": "|V100"},
            {"shape": (), "typestr": "|S100"},
            {"shape": (50,), "typestr": "<M8[ns]", "strides": (8,)},
        ):
            array = Array(memory, **right)
            moved = gpuio.read_into(array, self.path, 3)
            self.assertEqual(memory.copy_out(0, moved.bytes), DATA[3 : 3 + moved.bytes], right)
            self.assertIn(moved.bytes, (100, 400))
        for empty in ({"shape": (0, 3), "strides": (1, 2)}, {"shape": (0,), "data": (0, False)}):
            self.assertEqual(gpuio.read_into(Array(memory, **empty), self.path).bytes, 0)
        for wrong in (
            {"strides": (8,)},
            {"strides": (-4,)},
            {"strides": ()},
            {"shape": (5, 5), "strides": (4, 20)},
            {"shape": (2**33, 2**33)},
            {"shape": (2**60 + 1, 16), "typestr": "|u1"},
            {"shape": (2**62 + 1,)},
            {"shape": (-5,)},
            {"shape": (-5, -5)},
            {"data": (memory.address, True)},
            {"data": (0, False)},
            {"data": (memory.address + 2**64, False)},
            {"mask": object()},
            {"typestr": "|O8"},
            {"typestr": "|t1"},
            {"typestr": "f"},
            {"data": None},
        ):
            with self.assertRaises(ValueError, msg=wrong):
                gpuio.read_into(Array(memory, **wrong), self.path)
        with self.assertRaises(TypeError):
            gpuio.read_into(Array(memory, shape=(5.0,)), self.path)

    def test_an_array_of_the_host_needs_no_buffer(self):
        memory = gpuio.Memory("cpu", 100)
        about = {"shape": (5, 5), "typestr": "<f4", "data": (memory.address, False), "version": 3}
        for strides, taken in ((None, True), ((20, 4), True), ((4, 20), False)):
            array = type("Array", (), {"__array_interface__": {**about, "strides": strides}})()
            if not taken:
                with self.assertRaisesRegex(ValueError, "not contiguous"):
                    gpuio.read_into(array, self.path)
                continue
            self.assertEqual(gpuio.read_into(array, self.path, 7).bytes, 100)
            self.assertEqual(memory.copy_out(), DATA[7:107])

    def test_any_array_of_numpy_is_filled_whatever_its_elements(self):
        kinds = ["u1", "f2", "c8", "c16", ">f4", "?", "g", "M8[ns]", "m8[s]", "S5", "U3",
                 [("Offset", "i4"), ("b", "f8")]]
        try:
            import ml_dtypes

            kinds += [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4]
        except ImportError:
            pass
        for kind in kinds:
            array = numpy.empty(100, dtype=kind)
            self.assertEqual(gpuio.read_into(array, self.path, 5).bytes, array.nbytes, kind)
            self.assertEqual(array.tobytes(), DATA[5 : 5 + array.nbytes], kind)
            with self.assertRaises(ValueError):
                gpuio.read_into(numpy.empty((4, 6), dtype=kind)[:, ::2], self.path)
            frozen = numpy.empty(4, dtype=kind)
            frozen.flags.writeable = False
            with self.assertRaises(ValueError):
                gpuio.read_into(frozen, self.path)
        for kind in ("O", [("a", "i4"), ("o", "O")]):
            with self.assertRaisesRegex(ValueError, "objects of Python"):
                gpuio.read_into(numpy.empty(4, dtype=kind), self.path)

    def test_a_read_counts_its_own_bytes_alone(self):
        memory = gpuio.Memory(0, 1 << 20)
        beyond = Array(memory, shape=(1 << 22,), typestr="|u1")
        long = self.path.with_name("long")
        long.write_bytes(DATA * 4)
        for _ in range(40):
            for _ in range(3):
                with self.assertRaises(gpuio.GpuioError):
                    gpuio.read_into(beyond, long)
            moved = memory.read(self.path)
            self.assertEqual((moved.bytes, moved.gpu), (1 << 20, 1 << 20))
            self.assertEqual(moved.cached + moved.direct, 1 << 20)
            self.assertEqual(memory.copy_out(), DATA)


if __name__ == "__main__":
    unittest.main()
