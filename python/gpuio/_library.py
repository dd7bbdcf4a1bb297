"""``libgpuio.so.0`` by ctypes: its functions, its errors, and which GPUs there are.

ctypes and not an extension module: one wheel serves every Python from 3.9 on, of any build, and the
calls are so few and so long (a read of a file) that their cost does not matter. ctypes releases the
interpreter's lock while a call runs.
"""

import ctypes
import errno
import functools
import importlib
import itertools
import operator
import os
import re
import reprlib
import sys
import weakref
from typing import Any, Dict, Iterable, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

from ._environment import variable

_NAME = "libgpuio.so.0"
# Names the library in another place than the package; for tests and unusual installations.
_VARIABLE = "GPUIO_LIBGPUIO"

# How the library's words begin: a function of C, which users of Python do not call.
_FUNCTION = re.compile("^gpuio_([a-z]+)[a-z_]*")


def _shown(function: "re.Match[str]") -> str:
    return {"reaches": "devices"}.get(function[1], function[1])


_SOFTWARE = "GPUIO_CUFILE_DRIVER=software takes gpuio's software GPU, whose times say nothing"
_MORE = (
    "gpuio's software GPU is in use, and has as many devices as GPUIO_SOFT_GPUS says before its "
    "first use (1)"
)


def _software() -> str:
    return _MORE if variable("GPUIO_CUFILE_DRIVER") == "software" else _SOFTWARE


def _host() -> str:
    return f'device="cpu" is host memory where a function takes it; {_software()}'


# What to do in Python, by the errno.
_REMEDIES = {
    errno.ENOMEM: "Take fewer bytes, or another device",
    errno.EBADF: "Give a path, or a descriptor that is open for reading",
}


class GpuioError(OSError):
    """What failed, and what to do, in words. ``errno`` is that of a call of the library."""

    exit_code: int = 1
    """To end a script with: of a run of the program its own; else 3 without a GPU, and 1."""


_LIBRARIES = {"torch": "PyTorch", "numpy": "NumPy", "safetensors": "safetensors"}


def needed(module: str, by: str, instead: str = "") -> Any:
    """Another library that a function needs, imported; or what to install, or do instead."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        needs = f"{by} needs {_LIBRARIES[module]}"
        if error.name != module:  # It is there, and lacks something itself.
            raise ImportError(f"{needs}: {error}", name=error.name) from error
        raise ModuleNotFoundError(
            f"{needs}, which {sys.executable} does not have: pip install {module}"
            + (f"; {instead}" if instead else ""),
            name=module,
        ) from None


class Moved(NamedTuple):
    """What a read moved, in bytes."""

    bytes: int
    """From the start of the range; fewer than asked only where the file ends."""
    cached: int
    """Of these, through the page cache: it held them, or read them from the device first, as it
    does for memory of the host and for short reads. So this is no proof of a warm file."""
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


class _Arrangement(ctypes.Structure):
    _fields_ = [
        ("groups", ctypes.c_void_p),
        ("group_count", ctypes.c_uint64),
        ("runs", ctypes.c_void_p),
        ("run_count", ctypes.c_uint64),
        ("places", ctypes.c_void_p),
        ("place_count", ctypes.c_uint64),
    ]


class _Part(ctypes.Structure):
    _fields_ = [
        ("offset", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("rows", ctypes.c_uint64),
        ("stride", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("copies", ctypes.POINTER(ctypes.c_uint64)),
        ("copy_count", ctypes.c_uint32),
        ("fd", ctypes.c_int),
    ]


class Part(NamedTuple):
    """A range of a file, or rows of a matrix in one, and where its bytes go."""

    fd: int
    offset: int
    length: int
    """Of a row, in bytes."""
    address: int
    rows: int = 1
    stride: int = 0
    """Bytes in the file from row to row."""
    copies: Sequence[int] = ()
    """Memory of other GPUs that gets the same bytes."""


class Run(NamedTuple):
    """Neighbours in a file that stay so in memory: one read fills them."""

    group: int
    at: int
    """Of its first byte in the group."""
    offset: int
    """Of its first byte in the file."""
    length: int


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

    It is open as long as this object lives. The numbers of all tensors are taken at once: a model
    can have tens of thousands, and a field of a structure costs ctypes as much as a whole array.
    """

    # Words of a `gpuio_stored`: name, dtype (each address and length), bits and dimensions, then the
    # shape's address, offset and length.
    _WORDS = 8

    def __init__(self, library: "Library", header: Any) -> None:
        weakref.finalize(self, library.close, header)
        self._library, self._header = library, header
        shown: _Header = header.contents
        self.count: int = shown.tensor_count
        words = self._numbers(shown.tensors, self.count * self._WORDS)
        self._names, self._name_lengths = words[0 :: self._WORDS], words[1 :: self._WORDS]
        self._dtypes, self._dtype_lengths = words[2 :: self._WORDS], words[3 :: self._WORDS]
        self._bits, self._shapes = words[4 :: self._WORDS], words[5 :: self._WORDS]
        self.offsets, self.lengths = words[6 :: self._WORDS], words[7 :: self._WORDS]
        """In bytes of the file, by number."""
        pairs = shown.metadata[: shown.metadata_count]
        self.metadata = {pair.name.get(): pair.text.get() for pair in pairs}

    def arranged(self, most: int) -> Tuple[List[int], List[Run], List[int], List[int], List[int]]:
        """All tensors in groups of at most so many bytes, or of one tensor with more.

        The bytes of each group, the runs, and in the file's order each tensor's number, its group,
        and its first byte there.
        """
        made = self._library.arrange(self._header, most)
        try:
            found = made.contents
            groups = list(self._numbers(found.groups, found.group_count))
            runs = self._numbers(found.runs, 4 * found.run_count)
            places = self._numbers(found.places, 3 * found.place_count)
            every = [Run(*runs[at : at + 4]) for at in range(0, len(runs), 4)]
            return groups, every, places[0::3], places[1::3], places[2::3]
        finally:
            self._library.free_arrangement(made)

    @staticmethod
    def _numbers(address: Optional[int], count: int) -> Any:
        """An array in place: a slice of it is a list."""
        return (ctypes.c_uint64 * count).from_address(address) if address and count else []

    def dtypes(self) -> List[str]:
        """The format's names of the types, by number."""
        known: Dict[int, str] = {}
        for address, length in set(zip(self._dtypes, self._dtype_lengths)):
            known[address] = ctypes.string_at(address, length).decode()
        return [known[address] for address in self._dtypes]

    def names(self) -> List[str]:
        """The names, by number."""
        if not self.count:
            return []
        ends = list(itertools.accumulate(self._name_lengths))
        pairs = zip([0, *ends], ends)
        # The library has them one behind the other.
        every = ctypes.string_at(self._names[0], ends[-1])
        if every.isascii():
            text = every.decode()
            return [text[begin:end] for begin, end in pairs]
        return [every[begin:end].decode() for begin, end in pairs]

    def shapes(self) -> List[Tuple[int, ...]]:
        """The sizes, by number."""
        # The high half of a word, on the little-endian machines that gpuio is built for.
        ends = list(itertools.accumulate(word >> 32 for word in self._bits))
        every = self._numbers(self._shapes[0], ends[-1])[:] if ends else []
        return [tuple(every[begin:end]) for begin, end in zip([0, *ends], ends)]


PATH = (str, bytes, os.PathLike)
_ACCEPTED = {
    PATH: "a path: str, bytes or os.PathLike",
    (*PATH, int): "a path or a descriptor: str, bytes, os.PathLike or int, such as file.fileno()",
    (str,): "text: str",
    (bool,): "True or False",
    (int, float): "a number",
    (str, int, float): "text or a number",
}


def refuse(value: Any, what: str, accepted: str) -> NoReturn:
    """The error for an argument of a wrong type: its name, what is accepted, what was given."""
    raise TypeError(f"{what} is {accepted}, not {reprlib.repr(value)} ({type(value).__name__})")


def check(types: Tuple[Any, ...], optional: bool = False, **given: Any) -> None:
    """Refuses arguments that are of none of the types, a row of `_ACCEPTED`. A truth value is no
    number, and None is only accepted where it is ``optional``."""
    for what, value in given.items():
        if value is None and optional:
            continue
        if not isinstance(value, types) or isinstance(value, bool) and bool not in types:
            refuse(value, what, _ACCEPTED[types] + (" or None" if optional else ""))


def listed(value: Any, what: str, accepted: str) -> List[Any]:
    """What can be gone through, and is neither text nor bytes, as a list."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        refuse(value, what, accepted)
    return list(value)


def few(words: Iterable[str], between: str = ", ") -> str:
    """The first words of some, and how many more there are."""
    every = list(words)
    more = [f"and {len(every) - 5} more"] if len(every) > 5 else []
    return between.join([*every[:5], *more])


def whole(value: Any, what: str, kind: Any = ctypes.c_uint64) -> int:
    """A whole number that C's type can hold. Truth values are none, and numbers of NumPy are."""
    try:
        # Older releases of NumPy take their truth values for numbers.
        if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None:
        refuse(value, what, "a whole number")
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
        gone = function("gpuio_tensor_capsule_gone", None, capsule=pointer)
        self.capsule_gone = ctypes.cast(gone._found, pointer)
        # Python's own functions by their addresses: how it was loaded decides who finds their names.
        by_python = function("gpuio_tensor_python", None, is_valid=pointer, get_pointer=pointer)
        by_python(*(
            ctypes.cast(getattr(ctypes.pythonapi, f"PyCapsule_{name}"), pointer).value
            for name in ("IsValid", "GetPointer")
        ))
        self._open = function(
            "gpuio_safetensors_open", i32, descriptor=i32, header=out(out(_Header))
        )
        self.close = function("gpuio_safetensors_close", None, header=out(_Header))
        self._arrange = function(
            "gpuio_safetensors_arrange", i32, header=out(_Header), most=u64,
            arrangement=out(out(_Arrangement)),
        )
        self.free_arrangement = function(
            "gpuio_arrangement_free", None, arrangement=out(_Arrangement)
        )
        self._read_parts = function(
            "gpuio_read_parts", i32, parts=out(_Part), count=u64, moved=out(_Bytes)
        )
        self._reaches = function("gpuio_reaches", i32, device=i32, other=i32)
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

    def _check(self, code: int, names_gpu: bool = True) -> int:
        if code < 0:
            words, remedy = _FUNCTION.sub(_shown, self._words()), _REMEDIES.get(-code)
            # A call without a device can't take another, and without a driver there is no first GPU.
            if -code == errno.ENODEV and not names_gpu:
                remedy = _software()
            elif -code == errno.ENODEV and "no CUDA driver" in words:
                remedy = _host()
            elif -code == errno.ENODEV:
                remedy = f'device="cuda:0" is the first GPU of gpuio.gpus(), {_host()}'
            error = GpuioError(-code, ". ".join(filter(None, (words, remedy))))
            error.exit_code = 3 if -code == errno.ENODEV else 1
            raise error
        return code

    def gpus(self) -> Gpus:
        software = ctypes.c_int(0)
        count = self._check(self._gpus(ctypes.byref(software)), names_gpu=False)
        return Gpus(count, bool(software.value))

    def read(self, fd: int, offset: int, address: int, length: int) -> Moved:
        moved = _Bytes()
        self._check(self._read(fd, offset, address, length, ctypes.byref(moved)))
        return Moved(moved.bytes, moved.cached, moved.direct, moved.gpu)

    def read_parts(self, parts: Sequence[Part]) -> Moved:
        """Reads all of them, several at once. The memory is the caller's word, as in C."""
        given = (_Part * len(parts))()
        keeps = []
        for part, to in zip(parts, given):
            to.fd, to.offset, to.length, to.address = part.fd, part.offset, part.length, part.address
            to.rows, to.stride, to.copy_count = part.rows, part.stride, len(part.copies)
            if part.copies:
                keeps.append((ctypes.c_uint64 * len(part.copies))(*part.copies))
                to.copies = keeps[-1]
        moved = _Bytes()
        self._check(self._read_parts(given, len(parts), ctypes.byref(moved)))
        return Moved(moved.bytes, moved.cached, moved.direct, moved.gpu)

    def reaches(self, device: int, other: int) -> bool:
        """Whether copies between two GPUs go directly."""
        return self._check(self._reaches(device, other)) == 1

    def arrange(self, header: Any, most: int) -> Any:
        made = ctypes.POINTER(_Arrangement)()
        self._check(self._arrange(header, most, ctypes.byref(made)))
        return made

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

    def safetensors(self, fd: int) -> Header:
        """What a file has. ``ValueError`` if it is not of the format."""
        header = ctypes.POINTER(_Header)()
        code = self._open(fd, ctypes.byref(header))
        if code == -errno.EBADMSG:
            raise ValueError(f"no whole file of safetensors: {self._words()}")
        self._check(code)
        return Header(self, header)


@functools.lru_cache(maxsize=None)
def library() -> Library:
    """The library: named by the environment, of this wheel, or as the loader finds it."""
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    own = os.path.join(package, _NAME)
    path = variable(_VARIABLE) or (own if os.path.exists(own) else _NAME)
    try:
        return Library(path)
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{_NAME} can't be used: {error}. It is looked for in the package ({package}) and "
            f"where the loader looks (ld.so(8)); {_VARIABLE} names another place. The wheel of "
            "gpuio has it (docs/install.md)"
        ) from error


def gpus() -> Gpus:
    """The GPUs of the CUDA driver, or gpuio's software GPU (``GPUIO_CUFILE_DRIVER``).

    Raises `GpuioError` with the reason if there is no driver, or it has no GPU.
    """
    return library().gpus()
