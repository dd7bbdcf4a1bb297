"""Memory of a GPU or the host, tensors in it, and reads of files into any tensor."""

import ctypes
import errno
import os
import re
import stat
import weakref
from types import TracebackType
from typing import Any, Iterable, List, NamedTuple, Optional, Tuple, Type, Union

from ._library import PATH, Moved, check, library, listed, needed, refuse, whole

Device = Union[str, int]
Source = Union[str, bytes, "os.PathLike[str]", int]

# DLPack's numbers (dlpack.h): types of devices and elements.
_CPU, _CUDA = 1, 2
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_FLOAT8_E4M3, _FLOAT8_E4M3FNUZ, _FLOAT8_E5M2, _FLOAT8_E5M2FNUZ, _FLOAT8_E8M0 = 10, 11, 12, 13, 14
_FLOAT6_E2M3, _FLOAT6_E3M2, _FLOAT4_E2M1 = 15, 16, 17


class Kind(NamedTuple):
    """A type of elements: DLPack's code, bits, and the names in NumPy and PyTorch."""

    code: int
    bits: int
    numpy: Optional[str]
    torch: Optional[str]


KINDS = {
    "bool": Kind(_BOOL, 8, "bool", "bool"),
    "int8": Kind(_INT, 8, "int8", "int8"),
    "int16": Kind(_INT, 16, "int16", "int16"),
    "int32": Kind(_INT, 32, "int32", "int32"),
    "int64": Kind(_INT, 64, "int64", "int64"),
    "uint8": Kind(_UINT, 8, "uint8", "uint8"),
    "uint16": Kind(_UINT, 16, "uint16", "uint16"),
    "uint32": Kind(_UINT, 32, "uint32", "uint32"),
    "uint64": Kind(_UINT, 64, "uint64", "uint64"),
    "float16": Kind(_FLOAT, 16, "float16", "float16"),
    "float32": Kind(_FLOAT, 32, "float32", "float32"),
    "float64": Kind(_FLOAT, 64, "float64", "float64"),
    "bfloat16": Kind(_BFLOAT, 16, None, "bfloat16"),
    "complex64": Kind(_COMPLEX, 64, "complex64", "complex64"),
    "complex128": Kind(_COMPLEX, 128, "complex128", "complex128"),
    "float8_e4m3fn": Kind(_FLOAT8_E4M3, 8, None, "float8_e4m3fn"),
    "float8_e4m3fnuz": Kind(_FLOAT8_E4M3FNUZ, 8, None, "float8_e4m3fnuz"),
    "float8_e5m2": Kind(_FLOAT8_E5M2, 8, None, "float8_e5m2"),
    "float8_e5m2fnuz": Kind(_FLOAT8_E5M2FNUZ, 8, None, "float8_e5m2fnuz"),
    "float8_e8m0fnu": Kind(_FLOAT8_E8M0, 8, None, "float8_e8m0fnu"),
    "float6_e2m3fn": Kind(_FLOAT6_E2M3, 6, None, None),
    "float6_e3m2fn": Kind(_FLOAT6_E3M2, 6, None, None),
    # PyTorch's type holds two of them, and its tensors half as many along the last index.
    "float4_e2m1fn": Kind(_FLOAT4_E2M1, 4, None, "float4_e2m1fn_x2"),
}
# What every release of PyTorch takes by DLPack; the rest goes as numbers of the same size.
# What to do without NumPy's own type. The upper half of a float32 is a bfloat16.
_BYTES = "t.tobytes() has the bytes"
_BITS = {
    "bfloat16": "(numpy.frombuffer(t.tobytes(), 'u2').astype('u4') << 16).view('f4')"
    ".reshape(t.shape) is float32 of the same values"
}
_TORCH = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16",
          "complex64", "complex128")
_PLAIN = {8: "uint8", 16: "int16", 32: "int32", 64: "int64"}


# NumPy's letters, which stand before the bytes of an element.
_LETTERS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


def kind_name(dtype: Any) -> str:
    """The name here of a type of PyTorch or NumPy, or of its name there."""
    # Of NumPy the type of an array, and that of a single value; str() of PyTorch's is its name.
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    name = name or (dtype.__name__.rstrip("_") if isinstance(dtype, type) else dtype)
    name = str(name).rpartition("torch.")[2]
    code = re.fullmatch("[<=|]?([biufc])([1-9][0-9]?)", name)
    if code:
        letter, size = code.groups()
        name = "bool" if name[-2:] == "b1" else f"{_LETTERS.get(letter)}{8 * int(size)}"
    elif name.endswith("_x2"):
        name = name[: -len("_x2")]
    if name in KINDS and getattr(dtype, "byteorder", "=") != ">":
        return name
    if not isinstance(dtype, str):
        refuse(dtype, "dtype", "a type of elements of PyTorch or NumPy, or its name")
    raise TypeError(f"{dtype!r} is no type of elements here: {', '.join(KINDS)}")


def device_number(device: Device) -> int:
    """The number of a GPU, or -1 for the host: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``1``."""
    if hasattr(device, "__index__") and not isinstance(device, bool):
        number = whole(device, "device", ctypes.c_int)
        if number >= 0:
            return number
    name, _, number_of = str(device).partition(":")
    if name == "cpu" and number_of in ("", "0"):
        return -1
    if name == "cuda" and (number_of == "" or number_of.isascii() and number_of.isdigit()):
        return whole(int(number_of or 0), "device", ctypes.c_int)
    accepted = '"cpu", "cuda", "cuda:N" or N'
    # A device of PyTorch has a type.
    known = isinstance(device, str) or any(hasattr(device, of) for of in ("__index__", "type"))
    if isinstance(device, bool) or not known:
        refuse(device, "device", accepted)
    raise ValueError(f"device is {accepted}, not {device!r}")


class _Share:
    """Bytes of a GPU or the host, which are freed when a `Memory` and its tensors are gone."""

    def __init__(self, number: int, nbytes: int) -> None:
        self.handle = library().memory(number, nbytes)
        weakref.finalize(self, library().release, self.handle)
        self.nbytes = nbytes
        self.device = "cpu" if number < 0 else f"cuda:{number}"

    @property
    def address(self) -> int:
        return library().address(self.handle) or 0

    def range(self, offset: int, nbytes: Optional[int]) -> Tuple[int, int]:
        """The range, if it is in it. Without ``nbytes``: to its end."""
        offset = whole(offset, "offset")
        nbytes = self.nbytes - offset if nbytes is None else whole(nbytes, "nbytes")
        if nbytes < 0 or offset + nbytes > self.nbytes:
            raise ValueError(f"{nbytes} bytes at {offset} are not in {self.nbytes} bytes")
        return offset, nbytes

    def copy_out(self, offset: int, nbytes: Optional[int]) -> bytearray:
        offset, nbytes = self.range(offset, nbytes)
        copy = bytearray(nbytes)
        if nbytes:
            view = (ctypes.c_char * nbytes).from_buffer(copy)
            library().copy_out(self.handle, offset, ctypes.addressof(view), nbytes)
            del view
        return copy


class Memory:
    """Bytes on a GPU or in the host. They are freed when it and all its tensors are gone.

    A context manager: at the end of ``with`` it gives up its own share.
    """

    def __init__(self, device: Device, nbytes: int) -> None:
        number = device_number(device)
        self._own: Optional[_Share] = _Share(number, whole(nbytes, "nbytes"))
        self.nbytes, self.device = self._own.nbytes, self._own.device

    @property
    def _share(self) -> _Share:
        if self._own is None:
            raise ValueError("the memory was released: its tensors keep their bytes, it has none")
        return self._own

    @property
    def address(self) -> int:
        """Its first byte; a CUDA device pointer on a GPU. 0 without bytes."""
        return self._share.address

    def read(
        self, source: Source, file_offset: int = 0, nbytes: Optional[int] = None, at: int = 0
    ) -> Moved:
        """Reads ``nbytes`` of a file from ``file_offset`` on, to byte ``at`` of the memory.

        Without ``nbytes`` as many as fit. `Moved.bytes` is smaller where the file ends early, and 0
        at its end and past it, as in `io.RawIOBase.readinto`.
        """
        share = self._share
        at, nbytes = share.range(at, nbytes)
        return _read(source, file_offset, share.address + at, nbytes)

    def copy_out(self, offset: int = 0, nbytes: Optional[int] = None) -> bytearray:
        """A copy of its bytes in host memory."""
        return self._share.copy_out(offset, nbytes)

    def tensor(self, dtype: Any, shape: Iterable[int], offset: int = 0) -> "Tensor":
        """A tensor of its bytes, from byte ``offset`` on, with the last index fastest.

        ``dtype`` is a type of PyTorch or NumPy, or its name: ``"float32"``, ``"torch.float32"``,
        ``"f4"``.
        Elements of less than a byte lie next to each other, as in their file.
        """
        return Tensor(self, dtype, tuple(listed(shape, "shape", "a list of sizes")), offset)

    def release(self) -> None:
        """Gives up its own share now. Its tensors keep their bytes."""
        self._own = None

    def __enter__(self) -> "Memory":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"gpuio.Memory({self.device!r}, {self.nbytes})"


class Tensor:
    """Elements in a `Memory`. Other libraries take it without a copy by DLPack.

    ``torch.from_dlpack(t)``, ``numpy.from_dlpack(t)``, ``cupy.from_dlpack(t)``, ``jax`` and others;
    ``t.torch()`` and ``t.numpy()`` also do what DLPack can't.
    """

    def __init__(self, memory: Memory, dtype: Any, shape: Tuple[int, ...], offset: int) -> None:
        dtype = kind_name(dtype)
        self.memory, self.dtype, self.offset = memory, dtype, whole(offset, "offset")
        self._share = memory._share
        self.shape = tuple(whole(size, "a size of the shape") for size in shape)
        bits = KINDS[dtype].bits
        self.itemsize: Optional[int] = bits // 8 if bits % 8 == 0 else None
        """Bytes of an element; None where it has less than one."""
        for size in self.shape:
            bits *= size
        self.nbytes = bits // 8
        if bits % 8 or self.offset + self.nbytes > memory.nbytes:
            raise ValueError(f"{dtype}{list(self.shape)} at {offset} is not in {memory!r}")

    @property
    def device(self) -> str:
        """``"cpu"`` or ``"cuda:N"``."""
        return self._share.device

    def __dlpack_device__(self) -> Tuple[int, int]:
        number = device_number(self.device)
        return (_CPU, 0) if number < 0 else (_CUDA, number)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """The capsule. The bytes are there already, so no stream has to wait for them."""
        if copy:
            raise BufferError("gpuio exports its memory without a copy")
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the tensor is on {self.device}, and stays there")
        if self.itemsize is None:
            raise BufferError(f"{self.dtype} has less than a byte: no strides of DLPack say that")
        return _capsule(self._managed(self.dtype, self.shape))

    def _managed(self, dtype: str, shape: Tuple[int, ...]) -> int:
        kind = KINDS[dtype]
        return library().tensor(
            self._share.handle, self.offset, kind.code, kind.bits, list(shape)
        )

    def tobytes(self) -> bytes:
        """A copy of its bytes in host memory, of any type."""
        return bytes(self._share.copy_out(self.offset, self.nbytes))

    def torch(self) -> Any:
        """A tensor of PyTorch over the same bytes."""
        torch = needed("torch", "Tensor.torch()")
        name = KINDS[self.dtype].torch
        kind = getattr(torch, name, None) if name else None
        if kind is None:
            raise TypeError(
                f"this PyTorch ({torch.__version__}) has no {self.dtype}: t.tobytes() has the bytes"
            )
        if self.device != "cpu":
            self._reached_by(torch)
        # A capsule instead of this object: PyTorch then asks for no device and no stream.
        if self.dtype in _TORCH:
            return torch.from_dlpack(_capsule(self._managed(self.dtype, self.shape)))
        plain, shape = _PLAIN[max(KINDS[self.dtype].bits, 8)], self.shape
        if self.itemsize is None:
            if not shape or shape[-1] % 2:
                raise TypeError(f"PyTorch has no {self.dtype} of an odd last size")
            shape = (*shape[:-1], shape[-1] // 2)
        return torch.from_dlpack(_capsule(self._managed(plain, shape))).view(kind)

    def _reached_by(self, torch: Any) -> None:
        instead = 't.numpy() is a copy, and device="cpu" loads into host memory'
        if library().gpus().software:
            raise RuntimeError(
                "the tensor is in the memory of gpuio's software GPU, of which PyTorch knows "
                f"nothing: {instead}"
            )
        # The second asks the driver for its devices, which takes 60 µs.
        if not (torch.cuda.is_initialized() or torch.cuda.is_available()):
            raise RuntimeError(
                f"the tensor is on {self.device}, and this PyTorch ({torch.__version__}) has no "
                f"CUDA: {instead}"
            )

    def numpy(self) -> Any:
        """An array of NumPy: over the same bytes on the host, a copy of those of a GPU."""
        numpy = needed("numpy", "Tensor.numpy()")
        kind = KINDS[self.dtype].numpy
        if kind is None:
            raise TypeError(f"NumPy has no {self.dtype}: {_BITS.get(self.dtype, _BYTES)}")
        if self.device != "cpu":
            buffer: Any = self._share.copy_out(self.offset, self.nbytes)
        elif self.nbytes == 0:
            buffer = b""
        else:
            address = self._share.address + self.offset
            buffer = (ctypes.c_char * self.nbytes).from_address(address)
            # The array keeps the buffer, and the buffer the bytes.
            buffer.share = self._share
        return numpy.frombuffer(buffer, dtype=kind).reshape(self.shape)

    def __repr__(self) -> str:
        return f"gpuio.Tensor({self.dtype}, {list(self.shape)}, {self.device!r})"


# What `PyCapsule_New` keeps by its address has to live as long as the interpreter.
_LABEL = ctypes.c_char_p(b"dltensor")
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def _capsule(managed: int) -> Any:
    # Code in Python can't be the destructor: it may run while an exception is pending.
    return _api.PyCapsule_New(managed, _LABEL, library().capsule_gone)


def open_file(path: Union[str, bytes, "os.PathLike[str]"]) -> int:
    """A descriptor for reading, of no directory: open(2) opens these, too."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return descriptor


def _read(source: Source, offset: int, address: int, nbytes: int) -> Moved:
    offset = whole(offset, "the offset in the file")
    check((*PATH, int), source=source)
    if nbytes == 0:
        return Moved(0, 0, 0, 0)
    if isinstance(source, int):
        return library().read(source, offset, address, nbytes)
    descriptor = open_file(source)
    try:
        return library().read(descriptor, offset, address, nbytes)
    finally:
        os.close(descriptor)


def read_into(tensor: Any, source: Source, file_offset: int = 0) -> Moved:
    """Fills a tensor with the bytes of a file from ``file_offset`` on.

    ``tensor`` is a contiguous tensor of PyTorch, an array of CuPy or Numba, a `Tensor`, or anything
    of the host with a writable buffer (NumPy, ``bytearray``). ``source`` is a path or a descriptor
    open for reading. Where the file ends early, `Moved.bytes` is smaller than the tensor, and the
    rest of it is undefined; it is 0 at the file's end and past it.

    Before the call, work of CUDA streams on a GPU tensor has to be done
    (``torch.cuda.synchronize()``).
    """
    address, nbytes, keeps = _place(tensor)
    moved = _read(source, file_offset, address, nbytes)
    del keeps
    return moved


def _place(tensor: Any) -> Tuple[int, int, Any]:
    """Address and bytes of a tensor, and what keeps them."""
    address, nbytes, keeps = _found(tensor)
    nbytes = whole(nbytes, "the number of the tensor's bytes")
    if nbytes and not address:
        raise ValueError("the tensor has no memory (its address is 0): read into one that has")
    return whole(address or 0, "the tensor's address"), nbytes, keeps


def _found(tensor: Any) -> Tuple[int, int, Any]:
    if isinstance(tensor, Tensor):
        return tensor._share.address + tensor.offset, tensor.nbytes, tensor
    if hasattr(tensor, "data_ptr") and hasattr(tensor, "element_size"):
        return _of_torch(tensor)
    interface = getattr(tensor, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(tensor, interface)
    try:
        view = memoryview(tensor)
    except (TypeError, ValueError):
        # An array without a buffer, or elements that buffers of Python do not have: bfloat16, times.
        interface = getattr(tensor, "__array_interface__", None)
        if interface is None:
            refuse(tensor, "tensor", "a tensor, an array or a writable buffer")
        return _of_interface(tensor, interface)
    if view.readonly:
        raise ValueError("the buffer may only be read")
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous: read into a new one, and copy that")
    # Without the names of its fields.
    _refuse_objects(tensor, "O" in re.sub(":[^:]*:", "", view.format))
    if view.nbytes == 0:
        return 0, 0, view
    bytes_ = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(bytes_), view.nbytes, bytes_


def _of_torch(tensor: Any) -> Tuple[int, int, Any]:
    place = getattr(getattr(tensor, "device", None), "type", "cpu")
    if place not in ("cpu", "cuda"):
        raise ValueError(f"the tensor is on {place!r}: read into one of the CPU or a CUDA GPU")
    if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided":
        raise ValueError(f"the tensor is {tensor.layout}: read into a dense one")
    if not tensor.is_contiguous():
        raise ValueError("the tensor is not contiguous: read into a new one, then tensor.copy_(it)")
    return tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor


def _of_interface(array: Any, interface: Any) -> Tuple[int, int, Any]:
    """An array by ``__cuda_array_interface__`` or, of the host, ``__array_interface__``."""
    try:
        words, shape = interface["typestr"], list(interface["shape"])
        address, read_only = interface["data"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the array's interface lacks what it should have: {error!r}") from error
    kind = re.fullmatch(r"[<>|=]?([a-zA-Z?])([0-9]{1,18})(\[.*\])?", words)
    if kind is None or kind[1] == "t":
        raise ValueError(f"the array has elements of type {words!r}, which are no whole bytes")
    _refuse_objects(array, kind[1] == "O")
    if read_only:
        raise ValueError("the array may only be read")
    if interface.get("mask") is not None:
        raise ValueError("the array has a mask: read into one without")
    # NumPy counts characters of text, of 4 bytes.
    itemsize = int(kind[2]) * (4 if kind[1] == "U" else 1)
    shape = [whole(size, "a size of the array's shape") for size in shape]
    strides = interface.get("strides")
    if strides is not None and not _contiguous(shape, list(strides), itemsize):
        raise ValueError("the array is not contiguous: read into a new one, and copy that")
    nbytes = itemsize
    for size in shape:
        nbytes *= size
    return address, nbytes, array


def _contiguous(shape: List[int], strides: List[int], itemsize: int) -> bool:
    """Whether elements follow each other, last index fastest. A size of 1 has any stride."""
    if len(shape) != len(strides):
        return False
    step = itemsize
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return 0 in shape
        step *= size
    return True


def _refuse_objects(array: Any, has: bool) -> None:
    if has or getattr(getattr(array, "dtype", None), "hasobject", False):
        raise ValueError("its elements are objects of Python, which are no bytes of a file")
