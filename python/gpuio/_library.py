"""``libgpuio.so.0`` by ctypes: its functions, its errors, and which GPUs there are.

ctypes and not an extension module: one wheel serves every Python from 3.9 on, of any build, and the
calls are so few and so long (a read of a file) that their cost does not matter. ctypes releases the
interpreter's lock while a call runs.
"""

import ctypes
import functools
import os
from pathlib import Path
from typing import List, NamedTuple

from ._environment import variable

_NAME = "libgpuio.so.0"
_SOFTWARE_GPU = "libgpuio_softgpu.so"
# Names the CUDA driver: system (the default), software, or a path.
_DRIVER = "GPUIO_CUFILE_DRIVER"
# Names the library in another place than the package; for tests and unusual installations.
_VARIABLE = "GPUIO_LIBGPUIO"


class GpuioError(OSError):
    """A call of the library that failed: ``errno``, and in words what happened and what to do."""


class Moved(NamedTuple):
    """What a read moved, in bytes."""

    bytes: int
    """From the start of the range; fewer than asked only where the file ends."""
    cached: int
    """Of these, out of the page cache."""
    direct: int
    """Of these, from the device past the page cache (``O_DIRECT``)."""
    gpu: int
    """Of these, into memory of a GPU."""


class Gpus(NamedTuple):
    """The GPUs that the CUDA driver has."""

    count: int
    software: bool
    """They are gpuio's software GPU: bytes are right, and times say nothing about hardware."""


class _Bytes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("bytes", "cached", "direct", "gpu")]


class Library:
    """The functions of ``gpuio.h``, with Python's errors."""

    def __init__(self, path: str) -> None:
        self.path = path
        object_ = ctypes.CDLL(path)

        def function(name: str, result, *arguments):
            found = getattr(object_, name)
            found.restype, found.argtypes = result, list(arguments)
            return found

        u64, i32, pointer = ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p
        out = ctypes.POINTER
        self._error = function("gpuio_error", ctypes.c_char_p)
        self._gpus = function("gpuio_gpus", i32, out(i32))
        self._read = function("gpuio_read", i32, i32, u64, pointer, u64, out(_Bytes))
        self._memory = function("gpuio_memory_new", i32, i32, u64, out(pointer))
        self._copy_out = function("gpuio_memory_copy_out", i32, pointer, u64, pointer, u64)
        self._tensor = function(
            "gpuio_tensor_new",
            i32,
            pointer,
            u64,
            ctypes.c_uint8,
            ctypes.c_uint8,
            i32,
            out(ctypes.c_int64),
            out(pointer),
        )
        self.address = function("gpuio_memory_address", pointer, pointer)
        self.release = function("gpuio_memory_release", None, pointer)

    def _check(self, code: int) -> int:
        if code < 0:
            raise GpuioError(-code, self._error().decode(errors="replace"))
        return code

    def gpus(self) -> Gpus:
        software = ctypes.c_int(0)
        count = self._check(self._gpus(ctypes.byref(software)))
        return Gpus(count, bool(software.value))

    def read(self, fd: int, offset: int, address: int, length: int) -> Moved:
        moved = _Bytes()
        self._check(self._read(fd, offset, address, length, ctypes.byref(moved)))
        return Moved(moved.bytes, moved.cached, moved.direct, moved.gpu)

    def memory(self, device: int, length: int) -> int:
        memory = ctypes.c_void_p()
        self._check(self._memory(device, length, ctypes.byref(memory)))
        if memory.value is None:
            raise GpuioError(0, "gpuio_memory_new made no memory and reported no error")
        return memory.value

    def copy_out(self, memory: int, offset: int, address: int, length: int) -> None:
        self._check(self._copy_out(memory, offset, address, length))

    def tensor(self, memory: int, offset: int, code: int, bits: int, shape: List[int]) -> int:
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        made = ctypes.c_void_p()
        self._check(
            self._tensor(memory, offset, code, bits, len(shape), sizes, ctypes.byref(made))
        )
        if made.value is None:
            raise GpuioError(0, "gpuio_tensor_new made no tensor and reported no error")
        return made.value


@functools.lru_cache(maxsize=None)
def library() -> Library:
    """The library: named by the environment, of this wheel, or as the loader finds it."""
    named = variable(_VARIABLE)
    own = Path(__file__).with_name("lib") / _NAME
    software = own.with_name(_SOFTWARE_GPU)
    if variable(_DRIVER) == "software" and software.exists():
        # The library looks beside the running program, which is Python.
        os.environ[_DRIVER] = str(software)
    path = named or (str(own) if own.exists() else _NAME)
    try:
        return Library(path)
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{_NAME} can't be used: {error}. It is looked for in the package ({own.parent}) and "
            f"where the loader looks (ld.so(8)); {_VARIABLE} names another place. A wheel of gpuio "
            "brings it: pip install gpuio"
        ) from error


def gpus() -> Gpus:
    """The GPUs of the CUDA driver, or gpuio's software GPU (``GPUIO_CUFILE_DRIVER``).

    Raises `GpuioError` with the reason if there is no driver, or it has no GPU.
    """
    return library().gpus()
