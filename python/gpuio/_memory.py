"""Memory of a GPU or the host, tensors in it, and reads of files into any tensor."""

import ctypes
import os
import weakref
from types import TracebackType
from typing import Any, Iterable, NamedTuple, Optional, Tuple, Type, Union

from ._library import Moved, library

Device = Union[str, int]
Source = Union[str, "os.PathLike[str]", int]

# DLPack's numbers (dlpack.h): types of devices and elements.
_CPU, _CUDA = 1, 2
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_FLOAT8_E4M3, _FLOAT8_E5M2, _FLOAT8_E8M0 = 10, 12, 14


class Kind(NamedTuple):
    """A type of elements: DLPack's code, bits, and the names in NumPy and PyTorch."""

    code: int
    bits: int
    numpy: Optional[str]
    torch: str


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
    "float8_e5m2": Kind(_FLOAT8_E5M2, 8, None, "float8_e5m2"),
    "float8_e8m0fnu": Kind(_FLOAT8_E8M0, 8, None, "float8_e8m0fnu"),
}
# What every release of PyTorch takes by DLPack; the rest goes as numbers of the same size.
_TORCH = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16",
          "complex64", "complex128")
_PLAIN = {8: "uint8", 16: "int16", 32: "int32", 64: "int64"}


def device_number(device: Device) -> int:
    """The number of a GPU, or -1 for the host: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``1``."""
    if isinstance(device, int) and not isinstance(device, bool) and device >= 0:
        return device
    name, _, number = str(device).partition(":")
    if name == "cpu" and number in ("", "0"):
        return -1
    if name == "cuda" and (number == "" or number.isdigit()):
        return int(number or 0)
    raise ValueError(f'{device!r} is no device. Give "cpu", "cuda", "cuda:N" or N')


class Memory:
    """Bytes on a GPU or in the host. They are freed when it and all its tensors are gone.

    A context manager: at the end of ``with`` it gives up its own share.
    """

    def __init__(self, device: Device, nbytes: int) -> None:
        self._library = library()
        number = device_number(device)
        self._handle: Optional[int] = self._library.memory(number, nbytes)
        self._finalizer = weakref.finalize(self, self._library.release, self._handle)
        self.nbytes = nbytes
        self.device = "cpu" if number < 0 else f"cuda:{number}"

    @property
    def handle(self) -> int:
        if self._handle is None:
            raise ValueError("the memory was released: its tensors keep their bytes, it has none")
        return self._handle

    @property
    def address(self) -> int:
        """Its first byte; a CUDA device pointer on a GPU. 0 without bytes."""
        return self._library.address(self.handle) or 0

    def read(
        self, source: Source, file_offset: int = 0, nbytes: Optional[int] = None, offset: int = 0
    ) -> Moved:
        """Reads bytes of a file into it, from byte ``offset`` on: as many as fit, or ``nbytes``."""
        nbytes = self.nbytes - offset if nbytes is None else nbytes
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise ValueError(f"{nbytes} bytes at {offset} are not in {self.nbytes} bytes")
        return _read(source, file_offset, self.address + offset, nbytes)

    def copy_out(self, offset: int = 0, nbytes: Optional[int] = None) -> bytearray:
        """A copy of its bytes in host memory."""
        nbytes = self.nbytes - offset if nbytes is None else nbytes
        copy = bytearray(nbytes)
        if nbytes:
            view = (ctypes.c_char * nbytes).from_buffer(copy)
            self._library.copy_out(self.handle, offset, ctypes.addressof(view), nbytes)
            del view
        return copy

    def tensor(self, dtype: str, shape: Iterable[int], offset: int = 0) -> "Tensor":
        """A tensor of its bytes, from byte ``offset`` on, with the last index fastest."""
        return Tensor(self, dtype, tuple(int(size) for size in shape), offset)

    def release(self) -> None:
        """Gives up its own share now."""
        self._handle = None
        self._finalizer()

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

    def __init__(self, memory: Memory, dtype: str, shape: Tuple[int, ...], offset: int) -> None:
        if dtype not in KINDS:
            raise TypeError(f"{dtype!r} is no type of elements here: {', '.join(KINDS)}")
        self.memory, self.dtype, self.shape, self.offset = memory, dtype, shape, offset
        self.itemsize = KINDS[dtype].bits // 8
        count = 1
        for size in shape:
            count *= size
        self.nbytes = count * self.itemsize
        if offset < 0 or min(shape, default=0) < 0 or offset + self.nbytes > memory.nbytes:
            raise ValueError(f"{dtype}{list(shape)} at {offset} is not in {memory!r}")

    @property
    def device(self) -> str:
        """``"cpu"`` or ``"cuda:N"``."""
        return self.memory.device

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
        return _capsule(self._managed(self.dtype))

    def _managed(self, dtype: str) -> int:
        kind = KINDS[dtype]
        return library().tensor(
            self.memory.handle, self.offset, kind.code, kind.bits, list(self.shape)
        )

    def torch(self) -> Any:
        """A tensor of PyTorch over the same bytes."""
        import torch

        kind = getattr(torch, KINDS[self.dtype].torch, None)
        if kind is None:
            raise TypeError(f"this PyTorch ({torch.__version__}) has no {self.dtype}")
        # A capsule instead of this object: PyTorch then asks for no device and no stream.
        if self.dtype in _TORCH:
            return torch.from_dlpack(_capsule(self._managed(self.dtype)))
        plain = _PLAIN[KINDS[self.dtype].bits]
        return torch.from_dlpack(_capsule(self._managed(plain))).view(kind)

    def numpy(self) -> Any:
        """An array of NumPy: over the same bytes on the host, a copy of those of a GPU."""
        import numpy

        kind = KINDS[self.dtype].numpy
        if kind is None:
            raise TypeError(
                f"NumPy has no {self.dtype}. Take the bits: t.memory.copy_out(t.offset, t.nbytes)"
            )
        if self.device != "cpu":
            buffer: Any = self.memory.copy_out(self.offset, self.nbytes)
        elif self.nbytes == 0:
            buffer = b""
        else:
            address = self.memory.address + self.offset
            buffer = (ctypes.c_char * self.nbytes).from_address(address)
            # The array keeps the buffer, and the buffer the bytes.
            buffer.memory = self.memory
        return numpy.frombuffer(buffer, dtype=kind).reshape(self.shape)

    def __repr__(self) -> str:
        return f"gpuio.Tensor({self.dtype}, {list(self.shape)}, {self.device!r})"


# What `PyCapsule_New` keeps by its address has to live as long as the interpreter.
_LABEL = ctypes.c_char_p(b"dltensor")
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


class _Managed(ctypes.Structure):
    """The end of ``DLManagedTensor``: 48 bytes of ``DLTensor``, then what is used here."""

    _fields_ = [
        ("tensor", ctypes.c_uint8 * 48),
        ("owner", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


def _delete_unused(capsule: int) -> None:
    # A consumer renames the capsule, and then the tensor is its own.
    if _api.PyCapsule_IsValid(capsule, _LABEL):
        managed = _api.PyCapsule_GetPointer(capsule, _LABEL)
        _Managed.from_address(managed).deleter(managed)


_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_delete_unused)


def _capsule(managed: int) -> Any:
    return _api.PyCapsule_New(managed, _LABEL, ctypes.cast(_DESTRUCTOR, ctypes.c_void_p))


def _read(source: Source, offset: int, address: int, nbytes: int) -> Moved:
    if offset < 0:
        raise ValueError(f"a file has no byte {offset}")
    if nbytes == 0:
        return Moved(0, 0, 0, 0)
    if isinstance(source, int):
        return library().read(source, offset, address, nbytes)
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return library().read(descriptor, offset, address, nbytes)
    finally:
        os.close(descriptor)


def read_into(tensor: Any, source: Source, offset: int = 0) -> Moved:
    """Fills a tensor with the bytes of a file from ``offset`` on.

    ``tensor`` is a contiguous tensor of PyTorch, an array of CuPy or Numba, a `Tensor`, or anything
    of the host with a writable buffer (NumPy, ``bytearray``). ``source`` is a path or a descriptor
    open for reading. Where the file ends early, `Moved.bytes` is smaller than the tensor, and the
    rest of it is undefined.

    Before the call, work of CUDA streams on a GPU tensor has to be done
    (``torch.cuda.synchronize()``).
    """
    address, nbytes, keeps = _place(tensor)
    moved = _read(source, offset, address, nbytes)
    del keeps
    return moved


def _place(tensor: Any) -> Tuple[int, int, Any]:
    """Address and bytes of a tensor, and what keeps them."""
    if isinstance(tensor, Tensor):
        return tensor.memory.address + tensor.offset, tensor.nbytes, tensor
    if hasattr(tensor, "data_ptr") and hasattr(tensor, "element_size"):
        if not tensor.is_contiguous():
            raise ValueError("the tensor is not contiguous: read into tensor.contiguous()")
        return tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor
    interface = getattr(tensor, "__cuda_array_interface__", None)
    if interface is not None:
        if interface.get("strides") is not None:
            raise ValueError("the array is not contiguous: read into a contiguous one")
        count = int(interface["typestr"][2:])
        for size in interface["shape"]:
            count *= size
        address, read_only = interface["data"]
        if read_only:
            raise ValueError("the array may only be read")
        return address, count, tensor
    view = memoryview(tensor)
    if view.readonly:
        raise ValueError("the buffer may only be read")
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous: read into a contiguous one")
    if view.nbytes == 0:
        return 0, 0, view
    if view.ndim != 1 or view.format != "B":
        view = view.cast("B")
    bytes_ = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(bytes_), view.nbytes, bytes_
