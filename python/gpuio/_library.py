"""``libgpuio.so.0`` by ctypes: its functions, its errors, and which GPUs there are.

ctypes and not an extension module: one wheel serves every Python from 3.9 on, of any build, and the
calls are so few and so long (a read of a file) that their cost does not matter. ctypes releases the
interpreter's lock while a call runs.
"""

import contextlib
import ctypes
import errno
import functools
import operator
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ._environment import variable

_NAME = "libgpuio.so.0"
# Names the library in another place than the package; for tests and unusual installations.
_VARIABLE = "GPUIO_LIBGPUIO"


class GpuioError(OSError):
    """What failed, and what to do, in words. ``errno`` is that of a call of the library."""

    exit_code: int = 1
    """To end a script with: of a run of the program its own; else 3 without a GPU, and 1."""


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


class _Text(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_void_p), ("length", ctypes.c_uint64)]

    def get(self) -> str:
        return ctypes.string_at(self.bytes, self.length).decode() if self.length else ""


class _Pair(ctypes.Structure):
    _fields_ = [("name", _Text), ("text", _Text)]


class _Header(ctypes.Structure):
    _fields_ = [
        ("tensors", ctypes.c_void_p),
        ("tensor_count", ctypes.c_uint64),
        ("metadata", ctypes.POINTER(_Pair)),
        ("metadata_count", ctypes.c_uint64),
    ]


class _RingsOptions(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint32)
        for name in ("rings", "poll_threads", "buffers", "max_buffers", "max_files", "reserved")
    ] + [("buffer_length", ctypes.c_uint64)]


class _Copy(ctypes.Structure):
    _fields_ = [
        ("from_", ctypes.c_uint64), ("to", ctypes.c_void_p), ("length", ctypes.c_uint64)
    ]


class _Digest(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("address", "length", "first", "digest")]


class Header:
    """The tensors and the metadata of a file of safetensors, by number in the header's order.

    The numbers of all tensors are taken at once: a model can have tens of thousands, and a field of a
    structure costs ctypes as much as a whole array.
    """

    # Words of a `gpuio_stored`: name, dtype (each address and length), bits and dimensions, then the
    # shape's address, offset and length.
    _WORDS = 8

    def __init__(self, header: _Header) -> None:
        self.count: int = header.tensor_count
        words = self._numbers(header.tensors, self.count * self._WORDS)
        self._names, self._name_lengths = words[0 :: self._WORDS], words[1 :: self._WORDS]
        self._dtypes, self._dtype_lengths = words[2 :: self._WORDS], words[3 :: self._WORDS]
        # The high half of a word, on the little-endian machines that gpuio is built for.
        self._dimensions = [word >> 32 for word in words[4 :: self._WORDS]]
        self._shapes = words[5 :: self._WORDS]
        self.offsets, self.lengths = words[6 :: self._WORDS], words[7 :: self._WORDS]
        """In bytes of the file, by number."""
        pairs = header.metadata[: header.metadata_count]
        self.metadata = {pair.name.get(): pair.text.get() for pair in pairs}

    @staticmethod
    def _numbers(address: Optional[int], count: int) -> List[int]:
        return list((ctypes.c_uint64 * count).from_address(address)) if address and count else []

    def dtypes(self) -> List[str]:
        """The format's names of the types, by number."""
        known: Dict[int, str] = {}
        for address, length in set(zip(self._dtypes, self._dtype_lengths)):
            known[address] = ctypes.string_at(address, length).decode()
        return [known[address] for address in self._dtypes]

    def names(self) -> List[str]:
        """The names, by number."""
        at, pairs = ctypes.string_at, zip(self._names, self._name_lengths)
        return [at(address, length).decode() if length else "" for address, length in pairs]

    def shapes(self) -> List[Tuple[int, ...]]:
        """The sizes, by number."""
        kinds = {rank: ctypes.c_uint64 * rank for rank in set(self._dimensions)}
        pairs = zip(self._shapes, self._dimensions)
        return [tuple(kinds[rank].from_address(at)) if rank else () for at, rank in pairs]


def whole(value: Any, what: str, kind: Any = ctypes.c_uint64) -> int:
    """A whole number that C's type can hold. Truth values are none, and numbers of NumPy are."""
    try:
        # Older releases of NumPy take their truth values for numbers.
        if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} has to be a whole number, not {type(value).__name__}") from None
    bits, signed = 8 * ctypes.sizeof(kind), kind(-1).value < 0
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if not least <= number <= most:
        shown = number if abs(number) < 2**80 else f"of {number.bit_length()} bits"
        raise ValueError(f"{what} {shown} is not between {least} and {most}")
    return number


class Function:
    """A function of the library. ctypes cuts numbers that are too large, so each is checked."""

    def __init__(self, found: Any, result: Any, parameters: Dict[str, Any]) -> None:
        found.restype, found.argtypes = result, list(parameters.values())
        self._found, self.parameters = found, parameters

    def __call__(self, *given: Any) -> Any:
        if len(given) != len(self.parameters):
            raise TypeError(f"{len(self.parameters)} arguments are needed, not {len(given)}")
        named = zip(given, self.parameters.items())
        return self._found(*(self._checked(value, name, kind) for value, (name, kind) in named))

    @staticmethod
    def _checked(value: Any, name: str, kind: Any) -> Any:
        if kind is ctypes.c_void_p:
            return None if value is None else whole(value, name)
        if isinstance(getattr(kind, "_type_", None), str):
            return whole(value, name, kind)
        return value


class Library:
    """The functions of ``gpuio.h``, with Python's errors."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.functions: Dict[str, Function] = {}
        object_ = ctypes.CDLL(path)

        def function(name: str, result: Any, **parameters: Any) -> Function:
            self.functions[name] = Function(getattr(object_, name), result, parameters)
            return self.functions[name]

        u64, i32, pointer = ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p
        out = ctypes.POINTER
        self._error = function("gpuio_error", ctypes.c_char_p)
        self._gpus = function("gpuio_gpus", i32, software=out(i32))
        self._read = function(
            "gpuio_read", i32, descriptor=i32, offset=u64, address=pointer, length=u64,
            moved=out(_Bytes),
        )
        self._memory = function(
            "gpuio_memory_new", i32, device=i32, length=u64, memory=out(pointer)
        )
        self._copy_out = function(
            "gpuio_memory_copy_out", i32, memory=pointer, offset=u64, to=pointer, length=u64
        )
        self._lock = function(
            "gpuio_pages_lock", i32, device=i32, address=pointer, length=u64, pages=out(pointer)
        )
        self.pages_unlock = function("gpuio_pages_unlock", None, pages=pointer)
        self._copy = function(
            "gpuio_copy_out", i32, device=i32, copies=out(_Copy), copy_count=u64,
            digests=out(_Digest), digest_count=u64,
        )
        self._tensor = function(
            "gpuio_tensor_new",
            i32,
            memory=pointer,
            offset=u64,
            code=ctypes.c_uint8,
            bits=ctypes.c_uint8,
            dimensions=i32,
            shape=out(ctypes.c_int64),
            tensor=out(pointer),
        )
        self._open = function(
            "gpuio_safetensors_open", i32, descriptor=i32, header=out(out(_Header))
        )
        self._close = function("gpuio_safetensors_close", None, header=out(_Header))
        u32 = ctypes.c_uint32
        self._rings_open = function(
            "gpuio_rings_open", i32, device=i32, options=out(_RingsOptions), rings=out(pointer)
        )
        self._add_file = function(
            "gpuio_rings_add_file", i32, rings=pointer, descriptor=i32, number=out(u32)
        )
        self._remove_file = function("gpuio_rings_remove_file", i32, rings=pointer, number=u32)
        self._grow = function("gpuio_rings_grow", i32, rings=pointer, buffers=u32)
        self._wake = function("gpuio_rings_wake", i32, rings=pointer)
        self._rings_close = function("gpuio_rings_close", i32, rings=pointer)
        self._header = function("gpuio_device_header", ctypes.c_char_p)
        self.rings_address = function("gpuio_rings_address", u64, rings=pointer)
        self.rings_count = function("gpuio_rings_count", u32, rings=pointer)
        self.rings_in_flight = function("gpuio_rings_in_flight", u64, rings=pointer)
        self.address = function("gpuio_memory_address", pointer, memory=pointer)
        self.release = function("gpuio_memory_release", None, memory=pointer)

    def _words(self) -> str:
        return self._error().decode(errors="replace")

    def _check(self, code: int) -> int:
        if code < 0:
            error = GpuioError(-code, self._words())
            error.exit_code = 3 if -code == errno.ENODEV else 1
            raise error
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
            raise GpuioError("gpuio_memory_new made no memory and reported no error")
        return memory.value

    def copy_out(self, memory: int, offset: int, address: int, length: int) -> None:
        self._check(self._copy_out(memory, offset, address, length))

    def pages_lock(self, device: int, address: int, length: int) -> int:
        pages = ctypes.c_void_p()
        self._check(self._lock(device, address, length, ctypes.byref(pages)))
        return pages.value or 0

    def move_out(
        self, device: int, copies: List[Tuple[int, int, int]], digests: List[Tuple[int, int, int]]
    ) -> List[int]:
        """Copies (from, to, bytes), and the digests of (address, bytes, number of the first word)."""
        given = (_Copy * len(copies))(*copies)
        asked = (_Digest * len(digests))(*((*one, 0) for one in digests))
        self._check(self._copy(device, given, len(copies), asked, len(digests)))
        return [one.digest for one in asked]

    def tensor(self, memory: int, offset: int, code: int, bits: int, shape: List[int]) -> int:
        checked = [whole(size, "a size of the shape", ctypes.c_int64) for size in shape]
        sizes = (ctypes.c_int64 * len(shape))(*checked)
        made = ctypes.c_void_p()
        self._check(
            self._tensor(memory, offset, code, bits, len(shape), sizes, ctypes.byref(made))
        )
        if made.value is None:
            raise GpuioError("gpuio_tensor_new made no tensor and reported no error")
        return made.value

    def device_header(self) -> str:
        return self._header().decode()

    def rings_open(
        self,
        device: int,
        rings: int,
        poll_threads: int,
        buffers: int,
        max_buffers: int,
        max_files: int,
        buffer_length: int,
    ) -> int:
        given = (rings, poll_threads, buffers, max_buffers, max_files)
        small = (whole(value, "an option of rings", ctypes.c_uint32) for value in given)
        options = _RingsOptions(*small, 0, whole(buffer_length, "buffer_length"))
        opened = ctypes.c_void_p()
        self._check(self._rings_open(device, ctypes.byref(options), ctypes.byref(opened)))
        if opened.value is None:
            raise GpuioError("gpuio_rings_open made no rings and reported no error")
        return opened.value

    def rings_add_file(self, rings: int, fd: int) -> int:
        number = ctypes.c_uint32()
        self._check(self._add_file(rings, fd, ctypes.byref(number)))
        return number.value

    def rings_remove_file(self, rings: int, number: int) -> None:
        self._check(self._remove_file(rings, number))

    def rings_grow(self, rings: int, buffers: int) -> None:
        self._check(self._grow(rings, buffers))

    def rings_wake(self, rings: int) -> None:
        self._check(self._wake(rings))

    def rings_close(self, rings: int) -> None:
        self._check(self._rings_close(rings))

    @contextlib.contextmanager
    def safetensors(self, fd: int) -> Iterator[Header]:
        """What a file has, open for the time of ``with``. ``ValueError`` if it is not of the format."""
        header = ctypes.POINTER(_Header)()
        code = self._open(fd, ctypes.byref(header))
        if code == -errno.EBADMSG:
            raise ValueError(f"no file of safetensors: {self._words()}")
        self._check(code)
        try:
            yield Header(header.contents)
        finally:
            self._close(header)


@functools.lru_cache(maxsize=None)
def library() -> Library:
    """The library: named by the environment, of this wheel, or as the loader finds it."""
    own = Path(__file__).with_name("lib") / _NAME
    path = variable(_VARIABLE) or (str(own) if own.exists() else _NAME)
    try:
        return Library(path)
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{_NAME} can't be used: {error}. It is looked for in the package ({own.parent}) and "
            f"where the loader looks (ld.so(8)); {_VARIABLE} names another place. The wheel of "
            "gpuio has it (docs/install.md)"
        ) from error


def gpus() -> Gpus:
    """The GPUs of the CUDA driver, or gpuio's software GPU (``GPUIO_CUFILE_DRIVER``).

    Raises `GpuioError` with the reason if there is no driver, or it has no GPU.
    """
    return library().gpus()
