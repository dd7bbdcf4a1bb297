"""Files of safetensors into tensors of one GPU, several, or the host.

The library arranges a file's tensors in groups, each an allocation of its own (`_MOST`), and reads
all groups by one call. Names and shapes become objects of Python meanwhile.
"""

import os
import queue
import threading
import warnings
from typing import (
    Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union,
    overload,
)

from ._library import (
    PATH,
    GpuioError,
    Header,
    Moved,
    Part,
    Run,
    check,
    few,
    library,
    listed,
    needed,
)
from ._memory import KINDS, Device, Memory, Tensor, device_number, open_file
from ._shards import files_of

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
# Bytes of a group at most, unless one tensor has more: `GROUP_BYTES` of the library's `loader`, as
# a test of it says. Matrices of 64 MiB and the vectors beside them share one.
_MOST = 72 << 20
# Bytes that go over one link before the next one's turn, where several GPUs get a file.
_SHARE = 32 << 20

Path = Union[str, "os.PathLike[str]"]
Index = Any
"""What a shard has of a tensor: ``...``, a slice of rows, or a pair of slices: rows and columns."""


class FallbackWarning(UserWarning):
    """What was asked for was not possible, and what was allowed instead was done."""


# A tensor's memory, type, shape, first byte there, and bytes.
_Place = Tuple[Memory, str, Tuple[int, ...], int, int]


class Loaded(Mapping[str, Tensor]):
    """The tensors of files by name, on one device, and how their bytes came."""

    def __init__(
        self, device: str, places: Dict[str, _Place], metadata: Dict[str, str], moved: Moved
    ) -> None:
        self._places = places
        self.metadata = metadata
        """The strings in the header: of several files, those of the last one that has a name."""
        self.moved = moved
        """What the reads moved: for several devices, all of them together."""
        self.device = device
        """Where the tensors are: not what was asked for after a `FallbackWarning`."""

    def __getitem__(self, name: str) -> Tensor:
        memory, dtype, shape, offset, _ = self._places[name]
        return memory.tensor(dtype, shape, offset)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def torch(self) -> Dict[str, Any]:
        """Tensors of PyTorch over the same bytes, as for ``model.load_state_dict``."""
        if not self._places:
            return {}
        torch = needed("torch", "loaded.torch()")
        converted: Dict[str, Any] = {}
        for memory, dtype, first, end, names in self._alike():
            kind = KINDS[dtype]
            plain = getattr(torch, kind.torch or "", None) if kind.bits >= 8 else None
            if plain is None or first == end:
                converted.update((name, self._one(name, "torch")) for name in names)
                continue
            typed = memory.tensor("uint8", (end - first,), first).torch().view(plain)
            places, itemsize = [self._places[name] for name in names], kind.bits // 8
            # Tensors of their own over the bytes, and no views of the whole: views count changes
            # together, and PyTorch's gradients then refuse one for another's change.
            parts = torch.unsafe_split_with_sizes(typed, [place[4] // itemsize for place in places])
            for name, part, (_, _, shape, _, _) in zip(names, parts, places):
                converted[name] = part if len(shape) == 1 else part.view(shape)
        return converted

    def _alike(self) -> Iterator[Tuple[Memory, str, int, int, List[str]]]:
        """Tensors of one type that follow each other without a gap in a memory.

        The memory, the type, the first byte, the byte behind the last one, and the names.
        """
        names: List[str] = []
        memory, dtype, first, end = None, "", 0, 0  # type: Optional[Memory], str, int, int
        for name, (its, kind, _, offset, nbytes) in self._places.items():
            if end != offset or memory is not its or dtype != kind:
                if memory is not None:
                    yield memory, dtype, first, end, names
                memory, dtype, first, names = its, kind, offset, []
            names.append(name)
            end = offset + nbytes
        if memory is not None:
            yield memory, dtype, first, end, names

    def numpy(self) -> Dict[str, Any]:
        """Arrays of NumPy: over the same bytes on the host, copies of those of a GPU."""
        return {name: self._one(name, "numpy") for name in self}

    def _one(self, name: str, library: str) -> Any:
        try:
            return getattr(self[name], library)()
        except TypeError as error:
            one = f'loaded["name"].{library}()'
            raise TypeError(f"tensor {name!r}: {error}; {one} converts the others") from error

    def __repr__(self) -> str:
        tensors = "1 tensor" if len(self) == 1 else f"{len(self)} tensors"
        return f"<gpuio.Loaded: {tensors} on {self.device}, {self.moved}>"


def _count(shape: Iterable[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


@overload
def safetensors(
    path: Union[Path, Sequence[Path]], device: Device = "cuda:0", *, fallback: Optional[str] = None
) -> Loaded: ...


@overload
def safetensors(
    path: Union[Path, Sequence[Path]],
    *,
    devices: Sequence[Device],
    shards: Optional[Sequence[Mapping[str, Index]]] = None,
) -> List[Loaded]: ...


def safetensors(
    path: Union[Path, Sequence[Path]],
    device: Device = "cuda:0",
    *,
    fallback: Optional[str] = None,
    devices: Optional[Sequence[Device]] = None,
    shards: Optional[Sequence[Mapping[str, Index]]] = None,
) -> Union[Loaded, List[Loaded]]:
    """Loads safetensors into memory of a GPU or the host: a file, all files of a model by its
    directory or its ``*.safetensors.index.json``, or a list of these.

    The bytes go from the page cache or the drive through page-locked memory to the GPU, by gpuio's
    own transfer core: no cuFile, no copy in Python. The result maps names to `Tensor`, which PyTorch
    and others take without a copy; ``.torch()`` turns all into PyTorch's. A tensor that is kept
    keeps its group of at most 72 MiB, or itself if it is larger.

    Without such a GPU, or without memory on it, this raises `GpuioError`. With ``fallback="cpu"``
    the tensors are then loaded into host memory, and a `FallbackWarning` says so and why.

    With ``devices``, several GPUs, the result is a list with a `Loaded` for each. Each gets all
    tensors: each byte is read once, over the link of one GPU, and copied to the others. GPUs that
    can't reach one another each read for themselves, and a `FallbackWarning` says so. With
    ``shards`` as well, a mapping for each GPU from names to ``...`` (all of it), a slice of rows or
    a pair of slices (rows, columns), each gets these alone. Columns of short rows are read by whole
    rows, each once for all GPUs, through up to 32 MiB of memory of each.
    """
    check((str,), optional=True, fallback=fallback)
    if fallback not in (None, "cpu"):
        raise ValueError(f'fallback is None or "cpu", not {fallback!r}')
    several = [path] if isinstance(path, PATH) else listed(path, "path", "a path, or a list of them")
    for one in several:
        check(PATH, path=one)
    if not several:
        raise ValueError("path names no file: the list is empty")
    given = [os.fsdecode(one) for one in several]
    paths = [file for one in given for file in files_of(one).items()]
    if devices is None:
        if shards is not None:
            raise ValueError("shards need devices: one GPU for each")
        numbers = [device_number(device)]
    else:
        if device != "cuda:0":
            raise ValueError(f"device={device!r} and devices exclude one another: leave one out")
        numbers = [device_number(one) for one in listed(devices, "devices", "a list of GPUs")]
        if fallback is not None or not numbers or -1 in numbers:
            raise ValueError("devices are GPUs, one or more, and have no fallback")
        if len(set(numbers)) != len(numbers):
            raise ValueError("a GPU is there twice in devices")
        if shards is not None and len(shards) != len(numbers):
            raise ValueError(f"{len(shards)} shards for {len(numbers)} devices")
    files: List[_File] = []
    try:
        for one, wanted in paths:
            files.append(_File(one))
            lacking = sorted(wanted - set(files[-1].header.names())) if wanted else []
            if lacking:
                raise ValueError(f"{one} lacks {few(lacking)}, which the index names")
        if shards is not None:
            return _sharded(files, numbers, shards)
        try:
            made = _whole(files, numbers)
        except GpuioError as error:
            if fallback is None or numbers[0] < 0:
                raise
            others = f" and {len(paths) - 1} more of {len(paths)} files are" if paths[1:] else " is"
            warnings.warn(
                f"{paths[0][0]}{others} loaded into host memory, not on cuda:{numbers[0]}: {error}",
                FallbackWarning,
                stacklevel=2,
            )
            made = _whole(files, [-1])
        return made[0] if devices is None else made
    finally:
        for file in files:
            os.close(file.fd)


class _File:
    """A file that is open, and its header."""

    def __init__(self, path: str) -> None:
        self.path, self.fd = path, open_file(path)
        try:
            self.header: Header = library().safetensors(self.fd)
        except BaseException:
            os.close(self.fd)
            raise


class _Reads(threading.Thread):
    """The reads of parts, on a thread of their own: memory is allocated, and names are taken, while
    the first bytes come."""

    def __init__(self, files: List[_File]) -> None:
        super().__init__(name="gpuio-load", daemon=True)
        self._files, self._wanted = files, 0
        self._given: "queue.SimpleQueue[Optional[List[Part]]]" = queue.SimpleQueue()
        self._sums, self._error = [0, 0, 0, 0], None  # type: List[int], Optional[BaseException]
        self.start()

    def run(self) -> None:
        while (parts := self._all()) is not None:
            try:
                if self._error is None:
                    pairs = zip(self._sums, library().read_parts(parts))
                    self._sums = [before + more for before, more in pairs]
            except BaseException as error:
                self._error = error

    def _all(self) -> Optional[List[Part]]:
        """Waits for parts, and takes all that are there: fewer calls, in which threads wait for the
        last one. None at the end."""
        parts = self._given.get()
        while parts is not None and not self._given.empty():
            more = self._given.get()
            if more is None:
                self._given.put(None)
                break
            parts.extend(more)
        return parts

    def add(self, parts: List[Part]) -> None:
        self._wanted += sum(part.length * part.rows for part in parts)
        self._given.put(parts)

    def end(self) -> None:
        """Waits, also at Ctrl-C: no byte goes into the memory any more."""
        self._given.put(None)
        interrupt: Optional[BaseException] = None
        while self.is_alive():
            try:
                self.join()
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def moved(self) -> Moved:
        """What was moved, at the end."""
        if self._error is not None:
            raise self._error
        if self._sums[0] != self._wanted:
            names = ", ".join(file.path for file in self._files)
            raise ValueError(f"{names} became shorter while it was read")
        return Moved(*self._sums)


def _devices(numbers: List[int]) -> List[str]:
    return ["cpu" if number < 0 else f"cuda:{number}" for number in numbers]


def _loaded(
    files: List[_File], numbers: List[int], places: List[Dict[str, _Place]], moved: Moved
) -> List[Loaded]:
    metadata: Dict[str, str] = {}
    for file in files:
        metadata.update(file.header.metadata)
    pairs = zip(_devices(numbers), places)
    return [Loaded(device, one, dict(metadata), moved) for device, one in pairs]


def _refuse_twice(name: str, file: _File) -> None:
    raise ValueError(f"{file.path} has {name!r}, and a file before it has one too")


def _whole(files: List[_File], numbers: List[int]) -> List[Loaded]:
    """All tensors on each device."""
    copies, devices = _copies(numbers), _devices(numbers)
    if not any(file.header.count for file in files):
        # A device that is not there is an error all the same.
        for device in devices:
            Memory(device, 0)
    names: List[Dict[str, _Place]] = [{} for _ in numbers]
    arranged = []
    reads = _Reads(files)
    try:
        count = 0
        for file in files:
            groups, runs, *places = file.header.arranged(_MOST)
            memories: List[List[Memory]] = [[] for _ in numbers]
            addresses: List[List[int]] = [[] for _ in numbers]
            arranged.append((file, memories, places))
            for run in runs:
                if run.group == len(memories[0]):
                    for device, own, at in zip(devices, memories, addresses):
                        own.append(Memory(device, groups[run.group]))
                        at.append(own[-1].address)
                to = [own[run.group] + run.at for own in addresses]
                # These are read while further memory is allocated.
                reads.add(list(_parts(file.fd, run, to, copies, count)))
                count += 1
        for file, memories, (order, numbered, offsets) in arranged:
            header = file.header
            texts, shapes, lengths = header.names(), header.shapes(), header.lengths
            dtypes = [_TYPES[dtype] for dtype in header.dtypes()]
            for known, own in zip(names, memories):
                before = len(known)
                known.update(
                    (texts[nth], (own[group], dtypes[nth], shapes[nth], at, lengths[nth]))
                    for nth, group, at in zip(order, numbered, offsets)
                )
                if len(known) != before + header.count:
                    earlier = set(list(known)[:before])
                    _refuse_twice(next(name for name in texts if name in earlier), file)
    finally:
        reads.end()
    return _loaded(files, numbers, names, reads.moved())


def _parts(fd: int, run: Run, to: List[int], copies: bool, count: int) -> Iterator[Part]:
    """What reads a run into memory of each device: by its addresses there."""
    if not copies:
        for address in to:
            yield Part(fd, run.offset, run.length, address)
        return
    for nth, done in enumerate(range(0, run.length, _SHARE)):
        # In turn, so that all links are busy.
        mine = (count + nth) % len(to)
        others = [address + done for address in to[:mine] + to[mine + 1 :]]
        length = min(_SHARE, run.length - done)
        yield Part(fd, run.offset + done, length, to[mine] + done, copies=others)


def _copies(numbers: List[int]) -> bool:
    """Whether a byte is read for one of these GPUs and copied to the others."""
    if len(numbers) == 1:
        return False
    pairs = [(one, other) for one in numbers for other in numbers if one < other]
    apart = [pair for pair in pairs if not library().reaches(*pair)]
    if apart:
        warnings.warn(
            f"each GPU reads the whole file for itself: GPU {apart[0][0]} and GPU {apart[0][1]} "
            "can't reach each other's memory",
            FallbackWarning,
            stacklevel=4,
        )
    return not apart


class _Piece(NamedTuple):
    """What a shard has of a tensor."""

    file: _File
    name: str
    dtype: str
    shape: Tuple[int, ...]
    offset: int
    """Of its first byte in the file."""
    length: int
    """Bytes of a row of it, of `rows`, which are `stride` bytes apart in the file."""
    rows: int
    stride: int


def _sharded(
    files: List[_File], numbers: List[int], shards: Sequence[Mapping[str, Index]]
) -> List[Loaded]:
    """A part of each tensor on each device."""
    known: Dict[str, Tuple[_File, str, Tuple[int, ...], int]] = {}
    for file in files:
        header = file.header
        every = zip(header.names(), header.dtypes(), header.shapes(), header.offsets)
        for name, dtype, shape, offset in every:
            if name in known:
                _refuse_twice(name, file)
            known[name] = (file, _TYPES[dtype], shape, offset)
    order = {id(file): nth for nth, file in enumerate(files)}
    packed = []
    for shard in shards:
        missing = [name for name in shard if name not in known]
        if missing:
            raise ValueError(f"no file has tensor {missing[0]!r}, which a shard asks for")
        pieces = [_piece(name, index, *known[name]) for name, index in shard.items()]
        pieces.sort(key=lambda piece: (order[id(piece.file)], piece.offset))
        packed.append(_packed(pieces))
    found: List[Dict[str, _Place]] = [{} for _ in numbers]
    # Columns of a row go to several devices by one read: these are read together.
    columns: List[List[Part]] = [[] for _ in numbers]
    reads = _Reads(files)
    try:
        for nth in range(max((len(groups) for groups in packed), default=0)):
            # These are read while further memory is allocated.
            mine: List[List[Part]] = [[] for _ in numbers]
            for number, device in enumerate(_devices(numbers)):
                if nth < len(packed[number]):
                    for part in _filled(device, packed[number][nth], found[number]):
                        (mine if part.rows == 1 else columns)[number].append(part)
            reads.add(_in_turn(mine))
        reads.add(_in_turn(columns))
    finally:
        reads.end()
    places = [{name: own[name] for name in shard} for own, shard in zip(found, shards)]
    return _loaded(files, numbers, places, reads.moved())


def _in_turn(parts: List[List[Part]]) -> List[Part]:
    """Those of all devices in turn, so that all links are busy."""
    most = max((len(own) for own in parts), default=0)
    return [own[nth] for nth in range(most) for own in parts if nth < len(own)]


def _piece(
    name: str, index: Index, file: _File, dtype: str, shape: Tuple[int, ...], offset: int
) -> _Piece:
    slices = () if index is ... or index is None else index if isinstance(index, tuple) else (index,)
    if len(slices) > min(2, len(shape)) or not all(isinstance(one, slice) for one in slices):
        raise ValueError(
            f"tensor {name!r} of shape {list(shape)}: {index!r} is not ..., a slice of rows or a "
            "pair of slices"
        )
    bounds = [one.indices(size) for one, size in zip(slices, shape)]
    if any(step != 1 for _, _, step in bounds):
        raise ValueError(f"tensor {name!r}: {index!r} leaves out elements: take steps of 1")
    sizes = [max(end - first, 0) for first, end, _ in bounds]
    bits = KINDS[dtype].bits
    made = (*sizes, *shape[len(sizes) :])
    # Bits from an element of a dimension to the next one.
    row = bits * _count(shape[1:])
    column = bits * _count(shape[2:])
    skipped = row * bounds[0][0] if bounds else 0
    if len(sizes) < 2 or sizes[1] == shape[1]:
        length, rows, stride = bits * _count(made), 1, 0
    else:
        skipped += column * bounds[1][0]
        length, rows, stride = column * sizes[1], sizes[0], row
    if any(number % 8 for number in (skipped, length, stride)):
        raise ValueError(f"tensor {name!r}: {index!r} begins or ends inside a byte")
    return _Piece(file, name, dtype, made, offset + skipped // 8, length // 8, rows, stride // 8)


_Group = List[Tuple[_Piece, int]]
"""Pieces that share memory, each with its first byte there."""


def _packed(pieces: List[_Piece]) -> List[_Group]:
    groups: List[_Group] = []
    end = 0
    for piece in pieces:
        nbytes = piece.length * piece.rows
        at = -(-end // _ALIGNED) * _ALIGNED
        if not groups or at + nbytes > _MOST:
            groups.append([])
            at = 0
        groups[-1].append((piece, at))
        end = at + nbytes
    return groups


def _filled(device: str, group: _Group, found: Dict[str, _Place]) -> Iterator[Part]:
    """Memory of a device for a group, and what fills it."""
    last, at = group[-1]
    memory = Memory(device, at + last.length * last.rows)
    for piece, at in group:
        nbytes = piece.length * piece.rows
        found[piece.name] = (memory, piece.dtype, piece.shape, at, nbytes)
        if nbytes:
            yield Part(piece.file.fd, piece.offset, piece.length, memory.address + at, piece.rows,
                       piece.stride)
