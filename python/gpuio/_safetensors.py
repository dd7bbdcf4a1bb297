"""Files of safetensors into tensors, by one read of gpuio's transfer core."""

import os
import threading
import warnings
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from ._library import GpuioError, Header, Moved, library
from ._memory import KINDS, Device, Memory, Tensor, device_number
from ._shards import Shards, files_of

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


# A tensor's type, shape, and first byte in memory.
_Place = Tuple[str, Tuple[int, ...], int]
# From so many tensors on their names and shapes are taken while the bytes come.
_MANY = 1000


class Loaded(Mapping[str, Tensor]):
    """The tensors of a file by name, and how its bytes came."""

    def __init__(
        self, memory: Memory, places: Dict[str, _Place], metadata: Dict[str, str], moved: Moved
    ) -> None:
        self._memory, self._places = memory, places
        self.metadata = metadata
        """The strings in the file's header."""
        self.moved = moved
        """What the reads moved."""
        self.device = memory.device
        """Where the tensors are: not what was asked for after a `FallbackWarning`."""

    def __getitem__(self, name: str) -> Tensor:
        return self._memory.tensor(*self._places[name])

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def torch(self) -> Dict[str, Any]:
        """Tensors of PyTorch over the same bytes, as for ``model.load_state_dict``."""
        if not self._places or not self._memory.nbytes:
            return self._all("torch")
        import torch

        whole = self._memory.tensor("uint8", (self._memory.nbytes,)).torch()
        storage, empty = whole.untyped_storage(), torch.empty
        kinds, converted = {}, {}  # type: Dict[str, Any], Dict[str, Any]
        for name, (dtype, shape, offset) in self._places.items():
            if dtype not in kinds:
                kind = KINDS[dtype]
                plain = getattr(torch, kind.torch or "", None) if kind.bits >= 8 else None
                kinds[dtype] = (plain, max(kind.bits // 8, 1))
            plain, itemsize = kinds[dtype]
            if plain is None:
                converted[name] = self._one(name, "torch")
                continue
            # A tensor of its own over the bytes, and no view: views count changes together, and
            # PyTorch's gradients then refuse one for another's change.
            made = empty(0, dtype=plain, device=whole.device)
            converted[name] = made.set_(storage, offset // itemsize, shape)
        return converted

    def numpy(self) -> Dict[str, Any]:
        """Arrays of NumPy: over the same bytes on the host, copies of those of a GPU."""
        return self._all("numpy")

    def _all(self, library: str) -> Dict[str, Any]:
        return {name: self._one(name, library) for name in self}

    def _one(self, name: str, library: str) -> Any:
        try:
            return getattr(self[name], library)()
        except TypeError as error:
            one = f'loaded["name"].{library}()'
            raise TypeError(f"tensor {name!r}: {error}; {one} converts the others") from error

    def __repr__(self) -> str:
        return f"<gpuio.Loaded: {len(self)} tensors on {self.device}, {self.moved}>"


def safetensors(
    path: Union[str, "os.PathLike[str]"],
    device: Device = "cuda:0",
    *,
    fallback: Optional[str] = None,
) -> Union[Loaded, Shards]:
    """Loads a file of safetensors into memory of a GPU or the host; so many as a directory or its
    ``*.safetensors.index.json`` has, each into an allocation of its own.

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
    files = files_of(path)
    if files is not None:
        return Shards(files, lambda file: safetensors(file, device, fallback=fallback))
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with library().safetensors(descriptor) as header:
            try:
                return _loaded(descriptor, path, header, number)
            except GpuioError as error:
                if fallback is None or number < 0:
                    raise
                warnings.warn(
                    f"{path} is loaded into host memory, not on cuda:{number}: {error}",
                    FallbackWarning,
                    stacklevel=2,
                )
                return _loaded(descriptor, path, header, -1)
    finally:
        os.close(descriptor)


class _Run(NamedTuple):
    """Neighbours in the file that can stay so in memory: one read fills it."""

    at: int
    """Its first byte in memory, a multiple of 256."""
    first: int
    """Its first byte in the file."""
    end: int
    """The byte behind it in the file."""


def _arranged(header: Header, dtypes: List[str]) -> Tuple[List[_Run], List[Tuple[int, int]]]:
    """The runs, and in the file's order each tensor's number and first byte in memory.

    Tensors of a run keep their distances. The format's writers put tensors of larger elements first,
    so most files are one run.
    """
    sizes = {dtype: max(KINDS[_TYPES[dtype]].bits // 8, 1) for dtype in set(dtypes)}
    offsets, lengths = header.offsets, header.lengths
    order = sorted(range(header.count), key=lambda nth: (offsets[nth], lengths[nth]))
    runs, places = [], []  # type: List[_Run], List[Tuple[int, int]]
    at = first = end = 0
    for nth in order:
        offset = offsets[nth]
        if nth == order[0]:
            first = offset
        elif (offset - first) % sizes[dtypes[nth]]:
            runs.append(_Run(at, first, end))
            at = -(-(at + end - first) // _ALIGNED) * _ALIGNED
            first = offset
        end = offset + lengths[nth]
        places.append((nth, at + offset - first))
    if order:
        runs.append(_Run(at, first, end))
    return runs, places


class _Reads(threading.Thread):
    """The reads of a file's runs, on a thread of their own."""

    def __init__(self, descriptor: int, path: str, memory: Memory, runs: List[_Run]) -> None:
        super().__init__(name="gpuio-load", daemon=True)
        self._given = descriptor, path, memory, runs
        self._moved, self._error = Moved(0, 0, 0, 0), None  # type: Moved, Optional[BaseException]

    def run(self) -> None:
        try:
            self._moved = _read_runs(*self._given)
        except BaseException as error:
            self._error = error

    def moved(self) -> Moved:
        self.join()
        if self._error is not None:
            raise self._error
        return self._moved


def _read_runs(descriptor: int, path: str, memory: Memory, runs: List[_Run]) -> Moved:
    sums = [0, 0, 0, 0]
    for at, first, end in runs:
        if end == first:
            continue
        moved = library().read(descriptor, first, memory.address + at, end - first)
        if moved.bytes != end - first:
            raise ValueError(f"{path} became shorter while it was read")
        sums = [before + more for before, more in zip(sums, moved)]
    return Moved(*sums)


def _loaded(descriptor: int, path: str, header: Header, number: int) -> Loaded:
    dtypes = header.dtypes()
    runs, order = _arranged(header, dtypes)
    total = runs[-1].at + runs[-1].end - runs[-1].first if runs else 0
    memory = Memory("cpu" if number < 0 else number, total)
    reads = None
    if header.count >= _MANY:
        reads = _Reads(descriptor, path, memory, runs)
        reads.start()
    else:
        moved = _read_runs(descriptor, path, memory, runs)
    try:
        names, shapes = header.names(), header.shapes()
        places = {names[nth]: (_TYPES[dtypes[nth]], shapes[nth], at) for nth, at in order}
    finally:
        # The bytes go into the memory until it has ended.
        if reads is not None:
            moved = reads.moved()
    return Loaded(memory, places, header.metadata, moved)
