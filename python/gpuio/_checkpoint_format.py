"""Checkpoints as files: the tensors of a state, files of safetensors with them, the manifest.

A manifest (``gpuio-checkpoint.json``) has, for each rank, the structure of its state with names in
the place of tensors, the digest of each tensor, and size and digest of each file's header.
"""

import errno
import hashlib
import json
import os
import struct
import sys
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ._library import library, needed
from ._memory import KINDS, Tensor, device_number
from ._safetensors import _TYPES

PAGE = 4096
# The file that `torch.distributed.checkpoint` keeps beside the tensors.
DCP_METADATA = ".metadata"
_NAMES = {ours: name for name, ours in _TYPES.items()}
# In the header of each file of a save.
WRITER = "gpuio.checkpoint"
_PLAIN: Tuple[Any, ...] = (bool, int, float, str)
# The drain and `load` read with the limits that Python has by default: levels of a state, each of
# three levels of JSON, and digits of an integer.
_DEEPEST, _DIGITS = 200, 4300
_LARGEST = 10**_DIGITS - 1
# Bytes of a header at most, as the format has it, less what pads it.
_HEADER_MOST = 100_000_000 - PAGE
# Of an entry of a header: all but name and shape, and each size.
_ENTRY, _SIZE = 120, 21


class Leaf(NamedTuple):
    """A tensor of a state, contiguous."""

    name: str
    dtype: str
    """The name in gpuio: ``"bfloat16"``."""
    shape: Tuple[int, ...]
    address: int
    nbytes: int
    device: int
    """The GPU's number, -1 for the host."""
    keeps: Any
    """Its bytes live as long as this."""


class Place(NamedTuple):
    """A tensor in a file."""

    leaf: Leaf
    offset: int
    """Of its first byte in the file."""


class File(NamedTuple):
    """A file of safetensors as it is laid out."""

    name: str
    header: bytes
    places: List[Place]
    nbytes: int


def is_tensor(value: Any) -> bool:
    """Whether it has elements in memory. NumPy's scalars are plain values."""
    if hasattr(value, "data_ptr") and hasattr(value, "element_size"):
        return True
    if isinstance(value, Tensor) or hasattr(value, "__cuda_array_interface__"):
        return True
    return hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__") and (
        type(value).__name__ == "ndarray"
    )


def leaf_address(value: Any) -> int:
    """Where the first element is, of a tensor as it is."""
    if isinstance(value, Tensor):
        return value._share.address + value.offset if value.nbytes else 0
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    about = getattr(value, "__cuda_array_interface__", None) or value.__array_interface__
    return about["data"][0] or 0


def is_writable(value: Any) -> bool:
    """Not so only for arrays of NumPy that say so."""
    return bool(getattr(getattr(value, "flags", None), "writeable", True))


def leaf(name: str, value: Any) -> Leaf:
    """Where a tensor's bytes are; a contiguous copy of it if need be."""
    if isinstance(value, Tensor):
        number = device_number(value.device)
        address = value._share.address + value.offset if value.nbytes else 0
        return Leaf(name, value.dtype, value.shape, address, value.nbytes, number, value)
    if hasattr(value, "data_ptr") and hasattr(value, "element_size"):
        return _of_torch(name, value)
    if getattr(value, "__cuda_array_interface__", None) is not None:
        return _of_cuda(name, value)
    return _of_host(name, value)


def _of_torch(name: str, value: Any) -> Leaf:
    if hasattr(value, "to_local"):
        raise TypeError(
            f"tensor {name!r} is a part of a distributed one (DTensor): save it with "
            "torch.distributed.checkpoint and gpuio.checkpoint.Writer"
        )
    dispatch = getattr(type(value), "__torch_dispatch__", None)
    if dispatch is not None and dispatch is not sys.modules["torch"].Tensor.__torch_dispatch__:
        raise TypeError(f"tensor {name!r} is of type {type(value).__name__}, which has more than its "
                        "elements: convert it to a plain tensor first")
    where = value.device.type
    if where not in ("cpu", "cuda") or str(value.layout) != "torch.strided":
        raise TypeError(f"tensor {name!r} is {value.layout} on {where!r}: dense ones of the CPU or "
                        "a CUDA GPU are saved")
    dense = value.detach().resolve_conj().resolve_neg().contiguous()
    number = dense.device.index if where == "cuda" else -1
    return Leaf(name, str(dense.dtype).replace("torch.", ""), tuple(dense.shape), dense.data_ptr(),
                dense.numel() * dense.element_size(), number, dense)


def _of_cuda(name: str, value: Any) -> Leaf:
    about = value.__cuda_array_interface__
    if about.get("strides") is not None:
        library = sys.modules[type(value).__module__.partition(".")[0]]
        make = getattr(library, "ascontiguousarray", None)
        if make is None:
            raise TypeError(f"tensor {name!r} is not contiguous: save a contiguous copy")
        value = make(value)
        about = value.__cuda_array_interface__
    kind = _dtype(name, value.dtype)
    nbytes = KINDS[kind].bits // 8
    for size in about["shape"]:
        nbytes *= size
    number = int(getattr(getattr(value, "device", None), "id", 0))
    return Leaf(name, kind, tuple(about["shape"]), about["data"][0] or 0, nbytes, number, value)


def _of_host(name: str, value: Any) -> Leaf:
    numpy = needed("numpy", "a tensor of the host that is not PyTorch's")
    if isinstance(value, numpy.ndarray):
        # Others have more than their elements: a mask, names.
        if type(value) not in (numpy.ndarray, numpy.memmap):
            raise TypeError(f"tensor {name!r} is of type {type(value).__name__}: convert it to a plain "
                            "array first")
    else:
        if value.__dlpack_device__()[0] != 1 and "torch" in sys.modules:
            return _of_torch(name, sys.modules["torch"].from_dlpack(value))
        value = numpy.from_dlpack(value)
    # It makes a shape of () one of (1,).
    dense = numpy.ascontiguousarray(value)
    kind = _dtype(name, value.dtype)
    return Leaf(name, kind, tuple(value.shape), dense.ctypes.data, dense.nbytes, -1, dense)


def _dtype(name: str, dtype: Any) -> str:
    if getattr(dtype, "byteorder", "=") == ">":
        raise TypeError(f"tensor {name!r} has the bytes of its elements in reverse order")
    return str(getattr(dtype, "name", dtype))


class Flat:
    """The tensors of a state by name, and its structure in JSON.

    ``in_place`` is for tensors that are filled: those of which a copy would be taken are refused.
    """

    def __init__(self, state: Any, in_place: bool = False) -> None:
        self._in_place = in_place
        self.leaves: Dict[str, Leaf] = {}
        self._known: Dict[Tuple[Any, ...], str] = {}
        self.structure = self._walk(state, "")

    def _walk(self, value: Any, path: str, depth: int = 0) -> Any:
        if value is None or isinstance(value, _PLAIN):
            return _plain(value, path)
        if depth > _DEEPEST:
            raise ValueError(f"the state has more than {_DEEPEST} levels, at {path[:99]}")
        depth += 1
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and not (
            is_tensor(value)
        ):
            item = value.item() if value.dtype.kind in "biuf" else None
            if not isinstance(item, _PLAIN):
                raise TypeError(f"{path or 'the state'} is {type(value).__name__} of NumPy, no "
                                "number of Python")
            return self._walk(item, path, depth)
        if isinstance(value, dict):
            inside = []
            for key, one in value.items():
                if key is not None and not isinstance(key, _PLAIN):
                    raise TypeError(f"the key {key!r} in {path or 'the state'} is no plain value")
                key = _plain(key, f"the key {key!r} in {path or 'the state'}")
                inside.append([key, self._walk(one, self._below(path, key), depth)])
            if len({key for key, _ in inside}) != len(inside):
                raise TypeError(f"two keys in {path or 'the state'} have the same value")
            return {"dict": inside}
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self._walk(one, self._below(path, n), depth)
                           for n, one in enumerate(value)]}
        if is_tensor(value):
            return {"tensor": self._add(path or "tensor", value)}
        raise TypeError(
            f"{path or 'the state'} is of type {type(value).__name__}: a state has tensors, numbers, "
            "text, None, and lists, tuples and dictionaries of these. Convert it first"
        )

    @staticmethod
    def _below(path: str, key: Any) -> str:
        return f"{path}.{key}" if path else str(key)

    def _add(self, name: str, value: Any) -> str:
        one = leaf(name, value)
        if self._in_place and (one.address != leaf_address(value) or not is_writable(one.keeps)):
            raise ValueError(f"tensor {name!r} can't be filled: it is not contiguous, or read-only")
        if one.dtype not in _NAMES:
            raise TypeError(f"tensor {name!r} is {one.dtype}, which safetensors do not have")
        # Tied weights are stored once. Copies have addresses that live as long as the leaf.
        key = (one.device, one.address, one.dtype, one.shape)
        if one.nbytes and key in self._known:
            return self._known[key]
        again, unique = 1, name
        while unique in self.leaves or unique == "__metadata__":
            again += 1
            unique = f"{name}#{again}"
        self.leaves[unique] = one._replace(name=unique)
        self._known[key] = unique
        return unique


def _plain(value: Any, path: str) -> Any:
    """A value of a class of Python's own: another's becomes what it is derived from, if it equals
    that. Its own methods are not asked, for they may give another text or number."""
    for kind in _PLAIN:
        if isinstance(value, kind):
            plain = value if kind is bool else getattr(kind, f"__{kind.__name__}__")(value)
            if type(value) is not kind and plain == plain and not plain == value:
                raise TypeError(f"{path or 'the state'} is of type {type(value).__name__} that does not "
                                f"equal its {kind.__name__}. Convert it first")
            if kind is int and abs(plain) > _LARGEST:
                raise ValueError(f"{path or 'the state'} is an integer of more than {_DIGITS} "
                                 "digits, which Python does not read by default")
            return plain
    return None


def check_read_back(structure: Any) -> None:
    """Refuses a structure that its JSON does not give back, such as text with halves of UTF-16."""
    # Text, for no value without a number (nan) equals itself, and True is 1.
    if repr(json.loads(json.dumps(structure))) != repr(structure):
        raise ValueError("the state has text that does not read back from JSON as it was")


def rebuilt(structure: Any, tensors: Dict[str, Any]) -> Any:
    """A state from its structure."""
    if not isinstance(structure, dict):
        return structure
    (kind, inside), = structure.items()
    if kind == "tensor":
        return tensors[inside]
    if kind == "dict":
        return {key: rebuilt(one, tensors) for key, one in inside}
    made = [rebuilt(one, tensors) for one in inside]
    return tuple(made) if kind == "tuple" else made


def laid_out(leaves: Iterable[Leaf], most: int, prefix: str) -> List[File]:
    """Files of at most so many bytes, unless a tensor alone has more."""
    # Larger elements first: then each begins at a multiple of its size.
    order = sorted(leaves, key=lambda one: (-KINDS[one.dtype].bits, one.name))
    groups: List[List[Leaf]] = [[]]
    size = header = 0
    for one in order:
        words = len(json.dumps(one.name)) + _ENTRY + _SIZE * len(one.shape)
        if groups[-1] and (size + one.nbytes > most or header + words > _HEADER_MOST):
            groups.append([])
            size = header = 0
        groups[-1].append(one)
        size += one.nbytes
        header += words
    count, files = len(groups), []
    for number, group in enumerate(groups, 1):
        name = f"{prefix}-{number:05}-of-{count:05}" if count > 1 else prefix
        files.append(_file(f"{name}.safetensors", group))
    return files


def _file(name: str, group: List[Leaf]) -> File:
    entries: Dict[str, Any] = {"__metadata__": {"format": "pt", "writer": WRITER}}
    at, starts = 0, []
    for one in group:
        starts.append(at)
        entries[one.name] = {
            "dtype": _NAMES[one.dtype],
            "shape": list(one.shape),
            "data_offsets": [at, at + one.nbytes],
        }
        at += one.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    # Spaces up to a whole page: so tensors begin where O_DIRECT and wide loads want them.
    text += b" " * (-(len(text) + 8) % PAGE)
    header = struct.pack("<Q", len(text)) + text
    places = [Place(one, len(header) + start) for one, start in zip(group, starts)]
    return File(name, header, places, len(header) + at)


def check_headers(files: List[File]) -> None:
    """Refuses what `load` could not read: the library's own parser reads each header."""
    for file in files:
        fd = os.memfd_create("gpuio-header", os.MFD_CLOEXEC)
        try:
            os.write(fd, file.header)
            os.ftruncate(fd, file.nbytes)
            library().safetensors(fd)
        except OSError as error:
            # A limit of this process, which each file of so many bytes meets.
            if error.errno != errno.EFBIG:
                raise
        except ValueError as error:
            raise ValueError(f"the state can't be saved: {file.name} would be {error}") from error
        finally:
            os.close(fd)


def described(file: File, digests: Dict[str, int]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """A file, and its tensors, in the manifest."""
    about = {"bytes": file.nbytes, "header_bytes": len(file.header),
             "header_sha256": hashlib.sha256(file.header).hexdigest()}
    tensors = {
        place.leaf.name: {
            "file": file.name, "dtype": place.leaf.dtype, "shape": list(place.leaf.shape),
            "offset": place.offset, "bytes": place.leaf.nbytes,
            "digest": f"{digests[place.leaf.name]:016x}",
        }
        for place in file.places
    }
    return about, tensors


def index(files: List[File]) -> Optional[bytes]:
    """``model.safetensors.index.json``, as for models in several files."""
    if len(files) < 2:
        return None
    where = {place.leaf.name: file.name for file in files for place in file.places}
    total = sum(place.leaf.nbytes for file in files for place in file.places)
    return json.dumps({"metadata": {"total_size": total}, "weight_map": where}, indent=1).encode()
