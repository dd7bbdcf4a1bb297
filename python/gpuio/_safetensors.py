"""Files of safetensors into tensors, by one read of gpuio's transfer core."""

import os
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from ._library import GpuioError, Moved, Stored, library
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
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn",
    "F4": "float4_e2m1fn",
}
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
        return self._all("torch")

    def numpy(self) -> Dict[str, Any]:
        """Arrays of NumPy: over the same bytes on the host, copies of those of a GPU."""
        return self._all("numpy")

    def _all(self, library: str) -> Dict[str, Any]:
        converted = {}
        for name, tensor in self.items():
            try:
                converted[name] = getattr(tensor, library)()
            except TypeError as error:
                one = f'loaded["name"].{library}()'
                raise TypeError(f"tensor {name!r}: {error}; {one} converts the others") from error
        return converted

    def __repr__(self) -> str:
        return f"<gpuio.Loaded: {len(self)} tensors on {self.device}, {self.moved}>"


def safetensors(
    path: Union[str, "os.PathLike[str]"],
    device: Device = "cuda:0",
    *,
    fallback: Optional[str] = None,
) -> Loaded:
    """Loads a file of safetensors into memory of a GPU or the host.

    The bytes go from the page cache or the drive through page-locked memory into one allocation on
    the GPU, by gpuio's own transfer core: no cuFile, no copy in Python. The result maps names to
    `Tensor`, which PyTorch and others take without a copy; ``.torch()`` turns all into PyTorch's.

    Without such a GPU, or without memory on it, this raises `GpuioError`. With ``fallback="cpu"``
    the tensors are then loaded into host memory, and a `FallbackWarning` says so and why.
    """
    if fallback not in (None, "cpu"):
        raise ValueError(f'fallback is None or "cpu", not {fallback!r}')
    number = device_number(device)
    path = os.fspath(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        entries, metadata = library().safetensors(descriptor)
        entries.sort(key=lambda entry: (entry.offset, entry.nbytes))
        try:
            return _loaded(descriptor, path, entries, metadata, number)
        except GpuioError as error:
            if fallback is None or number < 0:
                raise
            warnings.warn(
                f"{path} is loaded into host memory, not on cuda:{number}: {error}",
                FallbackWarning,
                stacklevel=2,
            )
            return _loaded(descriptor, path, entries, metadata, -1)
    finally:
        os.close(descriptor)


def _runs(entries: List[Stored]) -> Iterator[Tuple[int, List[Stored]]]:
    """Neighbours that can stay so in memory, with the bytes of memory before each run.

    A run begins at a multiple of 256 bytes; its tensors keep their distances, so one read fills it.
    The format's writers put tensors of larger elements first, so most files are one run.
    """
    at, first, run = 0, 0, []  # type: int, int, List[Stored]
    for entry in entries:
        itemsize = max(KINDS[_TYPES[entry.dtype]].bits // 8, 1)
        if run and (entry.offset - first) % itemsize:
            yield at, run
            at = -(-(at + _end(run) - first) // _ALIGNED) * _ALIGNED
            run = []
        if not run:
            first = entry.offset
        run.append(entry)
    if run:
        yield at, run


def _end(run: List[Stored]) -> int:
    return run[-1].offset + run[-1].nbytes


def _loaded(
    descriptor: int,
    path: str,
    entries: List[Stored],
    metadata: Dict[str, str],
    number: int,
) -> Loaded:
    runs = list(_runs(entries))
    total = runs[-1][0] + _end(runs[-1][1]) - runs[-1][1][0].offset if runs else 0
    memory = Memory("cpu" if number < 0 else number, total)
    tensors = {}
    sums = [0, 0, 0, 0]
    for at, run in runs:
        first = run[0].offset
        nbytes = _end(run) - first
        if nbytes:
            moved = library().read(descriptor, first, memory.address + at, nbytes)
            if moved.bytes != nbytes:
                raise ValueError(f"{path} became shorter while it was read")
            sums = [before + more for before, more in zip(sums, moved)]
        for entry in run:
            dtype, offset = _TYPES[entry.dtype], at + entry.offset - first
            tensors[entry.name] = memory.tensor(dtype, entry.shape, offset)
    return Loaded(tensors, metadata, Moved(*sums), memory.device)
