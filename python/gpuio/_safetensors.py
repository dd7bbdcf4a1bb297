"""Files of safetensors into tensors, by one read of gpuio's transfer core."""

import json
import os
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from ._library import GpuioError, Moved, library
from ._memory import KINDS, Device, Memory, Tensor, device_number

# The names of types in the format's header (safetensors, "Format").
_TYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "BF16": "bfloat16",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}
# The format's own limit of its header, in bytes.
_HEADER_MOST = 100_000_000
# Tensors begin in memory where a GPU's widest loads can begin.
_ALIGNED = 256


class FallbackWarning(UserWarning):
    """What was asked for was not possible, and what was allowed instead was done."""


class Loaded(Mapping[str, Tensor]):
    """The tensors of a file by name, and how its bytes came."""

    def __init__(
        self, tensors: Dict[str, Tensor], metadata: Dict[str, str], moved: Moved, device: str
    ) -> None:
        self._tensors = tensors
        self.metadata = metadata
        """The strings in the file's header."""
        self.moved = moved
        """What the reads moved."""
        self.device = device
        """Where the tensors are: not what was asked for after a `FallbackWarning`."""

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def torch(self) -> Dict[str, Any]:
        """Tensors of PyTorch over the same bytes, as for ``model.load_state_dict``."""
        return {name: tensor.torch() for name, tensor in self.items()}

    def numpy(self) -> Dict[str, Any]:
        """Arrays of NumPy: over the same bytes on the host, copies of those of a GPU."""
        return {name: tensor.numpy() for name, tensor in self.items()}

    def __repr__(self) -> str:
        return f"<gpuio.Loaded: {len(self)} tensors on {self.device}, {self.moved}>"


class _Entry:
    """A tensor in the file: its type, shape, and bytes after the header."""

    def __init__(self, name: str, about: Any, data: int) -> None:
        try:
            kind, shape = about["dtype"], [int(size) for size in about["shape"]]
            begin, end = (int(place) for place in about["data_offsets"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"tensor {name!r} has no dtype, shape and data_offsets") from error
        if kind not in _TYPES:
            raise ValueError(f"tensor {name!r} has elements of type {kind}, which is not known")
        self.name, self.dtype, self.shape = name, _TYPES[kind], shape
        self.begin, self.end = begin, end
        count = KINDS[self.dtype].bits // 8
        for size in shape:
            count *= size
        if min(shape, default=0) < 0 or begin < 0 or end > data or end - begin != count:
            raise ValueError(
                f"tensor {name!r} has {count} bytes by its shape, and bytes {begin} to {end} of "
                f"{data} in the file"
            )


def _header(descriptor: int, path: str) -> Tuple[List[_Entry], Dict[str, str], int]:
    """Tensors by their place in the file, metadata, and where the data begin."""
    size = os.fstat(descriptor).st_size
    length = int.from_bytes(os.pread(descriptor, 8, 0), "little")
    if size < 8 or not 2 <= length <= min(_HEADER_MOST, size - 8):
        raise ValueError(f"{path} is no file of safetensors: its header would have {length} bytes")
    text = b""
    while len(text) < length:
        part = os.pread(descriptor, length - len(text), 8 + len(text))
        if not part:
            raise ValueError(f"{path} ends in its header")
        text += part
    try:
        header = json.loads(text)
        metadata = dict(header.pop("__metadata__", {}))
        data = size - 8 - length
        entries = [_Entry(name, about, data) for name, about in header.items()]
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no file of safetensors: {error}") from error
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    at = 0
    for entry in entries:
        if entry.begin != at:
            raise ValueError(
                f"{path} is no file of safetensors: tensor {entry.name!r} begins at byte "
                f"{entry.begin}, and the one before it ends at byte {at}"
            )
        at = entry.end
    return entries, metadata, 8 + length


def safetensors(
    path: Union[str, "os.PathLike[str]"],
    device: Device = "cuda:0",
    *,
    fallback: Optional[str] = None,
) -> Loaded:
    """Loads a file of safetensors into memory of a GPU or the host.

    The bytes go from the page cache or the drive through page-locked memory into one allocation on
    the GPU, by gpuio's own transfer core: no cuFile, no copy in Python. The result maps names to
    `Tensor`, which PyTorch and others take without a copy; ``.torch()`` makes all of them PyTorch's.

    Without such a GPU, or without memory on it, this raises `GpuioError`. With ``fallback="cpu"``
    the tensors are then loaded into host memory, and a `FallbackWarning` says so and why.
    """
    if fallback not in (None, "cpu"):
        raise ValueError(f'fallback is None or "cpu", not {fallback!r}')
    number = device_number(device)
    path = os.fspath(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        entries, metadata, data = _header(descriptor, path)
        try:
            return _loaded(descriptor, path, entries, metadata, data, number)
        except GpuioError as error:
            if fallback is None or number < 0:
                raise
            warnings.warn(
                f"{path} is loaded into host memory, not on cuda:{number}: {error}",
                FallbackWarning,
                stacklevel=2,
            )
            return _loaded(descriptor, path, entries, metadata, data, -1)
    finally:
        os.close(descriptor)


def _runs(entries: List[_Entry]) -> Iterator[Tuple[int, List[_Entry]]]:
    """Neighbours that can stay so in memory, with the bytes of memory before each run.

    A run begins at a multiple of 256 bytes; its tensors keep their distances, so one read fills it.
    The format's writers put tensors of larger elements first, so most files are one run.
    """
    at, first, run = 0, 0, []  # type: int, int, List[_Entry]
    for entry in entries:
        itemsize = KINDS[entry.dtype].bits // 8
        if run and (entry.begin - first) % itemsize:
            yield at, run
            at = -(-(at + run[-1].end - first) // _ALIGNED) * _ALIGNED
            run = []
        if not run:
            first = entry.begin
        run.append(entry)
    if run:
        yield at, run


def _loaded(
    descriptor: int,
    path: str,
    entries: List[_Entry],
    metadata: Dict[str, str],
    data: int,
    number: int,
) -> Loaded:
    runs = list(_runs(entries))
    total = runs[-1][0] + runs[-1][1][-1].end - runs[-1][1][0].begin if runs else 0
    memory = Memory("cpu" if number < 0 else number, total)
    tensors = {}
    sums = [0, 0, 0, 0]
    for at, run in runs:
        first, nbytes = run[0].begin, run[-1].end - run[0].begin
        if nbytes:
            moved = library().read(descriptor, data + first, memory.address + at, nbytes)
            if moved.bytes != nbytes:
                raise ValueError(f"{path} became shorter while it was read")
            sums = [before + more for before, more in zip(sums, moved)]
        for entry in run:
            offset = at + entry.begin - first
            tensors[entry.name] = memory.tensor(entry.dtype, entry.shape, offset)
    return Loaded(tensors, metadata, Moved(*sums), memory.device)
