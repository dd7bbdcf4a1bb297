"""Models of other libraries through gpuio: ``install()``, and ``python -m gpuio SCRIPT``.

``install`` replaces ``safetensors.safe_open`` in every module that has it, and so in
``safetensors.torch.load_file``, Transformers, Diffusers and Accelerate. The new one opens the file
with the original first: what is wrong with the file, names and metadata stay the original's. Only
where tensors of PyTorch for a CUDA device are wanted does gpuio read their bytes, each tensor into
memory that PyTorch allocates. Transformers (5) opens its files for the CPU and copies each tensor
to its device: there the copy reads by gpuio. All else goes to the original: other devices and
frameworks, files that gpuio can't open, types that this PyTorch lacks, and slices that are no whole
rows. If gpuio fails to read, one line says so, and the original reads.

Accepted are: equal tensors, one by one, on the devices and of the types that were asked for, in
storages of their own; and one line on standard error at ``install``, and at each first failure.
"""

import ctypes
import math
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from ._environment import variable
from ._library import GpuioError, check, gpus, library, needed
from ._memory import KINDS, Memory
from ._safetensors import _TYPES

# ``off`` turns `install` off, for programs that call it.
_VARIABLE = "GPUIO_INSTALL"
_DRIVER = "GPUIO_CUFILE_DRIVER"
_WITHOUT_GPU = (
    f"To try gpuio without a GPU set {_DRIVER}=software and load for the CPU (in Transformers "
    'device_map="cpu")'
)
# Reads of one call at a time: a read of a small tensor waits for its end alone.
_READERS = 4
_FRAMEWORKS = ("pt", "torch", "pytorch")
# Transformers' module, and its function that copies a tensor to its device.
_LOADING, _COPY = "transformers.core_model_loading", "_materialize_copy"

_lock = threading.Lock()
_originals: Dict[str, Any] = {}
_software = False
_said: Set[str] = set()
# Tensors and bytes that gpuio read.
_counts = [0, 0]


class Installed(NamedTuple):
    """What was read since `install`."""

    tensors: int
    """By gpuio."""
    bytes: int
    """Theirs."""
    failed: int
    """Files that gpuio failed to read, so that safetensors itself read what was left."""


def install(device: Optional[str] = None) -> None:
    """Lets safetensors, and what builds on it, load tensors for CUDA devices by gpuio.

    Call it before or after other libraries are imported. ``GPUIO_INSTALL=off`` turns it off. With
    ``GPUIO_CUFILE_DRIVER=software``, for tests without a GPU, every load for PyTorch goes through
    the software GPU, and its tensors are in host memory: ``device="software"`` demands that, and
    ``device="cuda"`` leaves it out. `installed` counts. Raises `ImportError` without safetensors,
    and `ValueError` where a variable names no driver.
    """
    global _software
    setting = variable(_VARIABLE) or "on"
    if setting not in ("on", "off"):
        raise ValueError(f"{_VARIABLE}={setting}: on or off")
    check((str,), optional=True, device=device)
    if device not in (None, "cuda", "software"):
        raise ValueError(f'device is "cuda" or "software", not {device!r}')
    if setting == "off":
        return _say(f"off, by {_VARIABLE}=off: safetensors reads by itself")
    software, absent = _driver()
    if device == "software" and not software:
        raise ValueError(absent or "a driver of GPUs is in use: set GPUIO_CUFILE_DRIVER=software")
    safetensors = needed("safetensors", "gpuio.install")
    with _lock:
        software = software and device != "cuda"
        is_new = not _originals or _software != software
        _software = software
        if not _originals:
            _counts[:] = [0, 0]
            _originals["safe_open"] = safetensors.safe_open
            _replace(safetensors.safe_open, SafeOpen)
    if is_new and absent:
        _say(f"{absent}, so safetensors reads by itself. {_WITHOUT_GPU}")
    elif is_new:
        where = (
            "for PyTorch, on the software GPU into host memory," if _software
            else "for CUDA devices"
        )
        _say(f"safetensors' tensors {where} are read by {library().path}")


def _driver() -> Tuple[bool, str]:
    """Whether it is the software GPU, and why there is no driver."""
    setting = variable(_DRIVER) or "system"
    if setting == "system":
        return False, "" if _has_driver() else "no CUDA driver (libcuda.so.1) can be loaded"
    try:
        return gpus().software, ""
    except GpuioError as error:
        # Another driver was asked for than the machine's: to go on without it would be silent.
        raise ValueError(f"{_DRIVER}={setting}: {error.strerror}") from error


def _has_driver() -> bool:
    """Whether a CUDA driver can be loaded. It is not started: children of fork could not use it."""
    for name in ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"):
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            pass
    return False


def installed() -> Optional[Installed]:
    """What was read since `install`. None before it, after `uninstall`, and where it is off."""
    with _lock:
        return Installed(*_counts, len(_said)) if _originals else None


def report() -> None:
    """A line on standard error: what was read since `install`."""
    tensors, nbytes = _counts
    what = f"{tensors} tensors, {nbytes} bytes" if tensors else "no tensor"
    others = f"; {len(_said)} files by safetensors itself" if _said else ""
    _say(f"{what} read by gpuio{others}")


def uninstall() -> None:
    """Puts the original functions back. Files that are open stay gpuio's."""
    with _lock:
        if _originals:
            _replace(SafeOpen, _originals.pop("safe_open"))
            if _COPY in _originals:
                setattr(sys.modules[_LOADING], _COPY, _originals.pop(_COPY))
            _said.clear()


def _replace(old: Any, new: Any) -> None:
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict) and names.get("__name__") != __name__:
            for name in [name for name, value in list(names.items()) if value is old]:
                setattr(module, name, new)


def _say(words: str) -> None:
    print(f"gpuio: {words}", file=sys.stderr)


def _say_once(path: str, error: Exception) -> None:
    """The first failure with a file."""
    if path not in _said:
        _said.add(path)
        _say(f"{path} is read by safetensors itself: {error}")


class SafeOpen:
    """In place of ``safetensors.safe_open``: its result, or one that reads by gpuio."""

    def __new__(cls, filename: Any, framework: Any, device: Any = "cpu", **more: Any) -> Any:
        original = _originals.get("safe_open")
        if original is None:
            # The caller kept this class beyond `uninstall`.
            import safetensors

            return safetensors.safe_open(filename, framework, device, **more)
        opened = original(filename, framework, device, **more)
        if framework not in _FRAMEWORKS:
            return opened
        caller = sys._getframe(1).f_globals.get("__name__", "")
        target = _served(device)
        if target is None and not (caller.startswith("transformers.") and _copies()):
            return opened
        try:
            return Opened(opened, _File(filename), target)
        except (GpuioError, OSError, ValueError) as error:
            _say_once(os.fspath(filename), error)
            return opened


def _served(device: Any) -> Optional[str]:
    """The device as PyTorch's name, if tensors for it are read by gpuio."""
    if device is None or isinstance(device, bool):
        return None
    word = f"cuda:{device}" if str(device).isdigit() else str(device)
    if _software and word.partition(":")[0] in ("cpu", "cuda"):
        return "cpu"
    return word if word.partition(":")[0] == "cuda" else None


def _copies() -> bool:
    """Whether Transformers' copy to a device reads by gpuio: replaced where it is not yet."""
    loading = sys.modules.get(_LOADING)
    with _lock:
        if _COPY not in _originals and _originals and hasattr(loading, _COPY):
            _originals[_COPY] = getattr(loading, _COPY)
            setattr(loading, _COPY, _copy(_originals[_COPY]))
        return _COPY in _originals


def _copy(original: Callable[..., Any]) -> Callable[..., Any]:
    def copy(tensor: Any, device: Any = None, dtype: Any = None) -> Any:
        target = _served(device) if isinstance(tensor, Slice) else None
        made = tensor._read(..., target) if target is not None else None
        if made is None:
            return original(tensor, device, dtype)
        return made if dtype is None else made.to(dtype=dtype)

    return copy


class _Entry(NamedTuple):
    kind: Any
    """PyTorch's type."""
    itemsize: int
    shape: Tuple[int, ...]
    offset: int


class _File:
    """A file of safetensors, open for gpuio's reads."""

    def __init__(self, path: Any) -> None:
        import torch

        self.path = os.fspath(path)
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self.fd)
        header = library().safetensors(self.fd)
        every = zip(header.names(), header.dtypes(), header.shapes(), header.offsets)
        self.entries: Dict[str, _Entry] = {}
        self.lacks: List[str] = []
        for name, dtype, shape, offset in every:
            kind = KINDS[_TYPES[dtype]]
            plain = getattr(torch, kind.torch or "", None)
            if plain is not None and kind.bits >= 8:
                self.entries[name] = _Entry(plain, kind.bits // 8, shape, offset)
            else:
                self.lacks.append(name)

    def rows(self, name: str, index: Any) -> Optional[_Entry]:
        """What an index takes, if it is all or whole rows in order. None for any other."""
        entry = self.entries.get(name)
        if entry is None or index is ...:
            return entry
        if not isinstance(index, slice) or not entry.shape:
            return None
        size = entry.shape[0]
        first = 0 if index.start is None else index.start
        end = size if index.stop is None else index.stop
        if index.step not in (None, 1) or not (type(first) is type(end) is int):
            return None
        if not 0 <= first < end <= size:
            return None
        row = entry.itemsize
        for more in entry.shape[1:]:
            row *= more
        shape = (end - first, *entry.shape[1:])
        return entry._replace(shape=shape, offset=entry.offset + first * row)

    def read(self, entries: List[_Entry], device: str) -> List[Any]:
        """New tensors with the bytes of these entries."""
        import torch

        if _software:
            return [self._by_software(torch, entry) for entry in entries]
        made = [torch.empty(entry.shape, dtype=entry.kind, device=device) for entry in entries]
        # Kernels before may still use memory that the allocator gives again.
        torch.cuda.current_stream(made[0].device).synchronize()
        pairs = [(entry, tensor) for entry, tensor in zip(entries, made) if tensor.numel()]
        if len(pairs) == 1:
            self._fill(*pairs[0])
        else:
            # Not with the module: most programs import it for nothing.
            from ._checkpoint_drain import results, started_pool

            readers = started_pool(_READERS, "gpuio-load")
            try:
                results(readers.submit(self._fill, *pair) for pair in pairs)
            finally:
                readers.shutdown(wait=False)
        return made

    def _fill(self, entry: _Entry, tensor: Any) -> None:
        nbytes = tensor.numel() * entry.itemsize
        moved = library().read(self.fd, entry.offset, tensor.data_ptr(), nbytes)
        self._whole(moved.bytes, nbytes)

    def _by_software(self, torch: Any, entry: _Entry) -> Any:
        nbytes = entry.itemsize
        for size in entry.shape:
            nbytes *= size
        if not nbytes:
            return torch.empty(entry.shape, dtype=entry.kind)
        memory = Memory(0, nbytes)
        self._whole(memory.read(self.fd, entry.offset).bytes, nbytes)
        return torch.frombuffer(memory.copy_out(), dtype=entry.kind).reshape(entry.shape)

    @staticmethod
    def _whole(moved: int, wanted: int) -> None:
        if moved != wanted:
            raise ValueError("it became shorter while it was read")

    def tried(self, names: List[Tuple[str, Any]], device: Optional[str]) -> Optional[List[Any]]:
        """The tensors of names and indices; None if the original has to read them."""
        if device is None:
            return None
        entries = [self.rows(name, index) for name, index in names]
        if not entries or None in entries:
            return None
        try:
            made = self.read(entries, device)  # type: ignore[arg-type]
            with _lock:
                _counts[0] += len(made)
                _counts[1] += sum(math.prod(one.shape) * one.itemsize for one in entries if one)
            return made
        except (GpuioError, ValueError) as error:
            _say_once(self.path, error)
            return None


class Opened:
    """An open file: tensors by gpuio, all else by the original."""

    def __init__(self, original: Any, file: _File, device: Optional[str]) -> None:
        self._original, self._file, self._device = original, file, device

    def __enter__(self) -> "Opened":
        self._original.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._original.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def get_slice(self, name: str) -> "Slice":
        return Slice(self._original.get_slice(name), self._file, name, self._device)

    def get_tensor(self, name: str) -> Any:
        made = self.get_slice(name)._read(..., self._device)
        return self._original.get_tensor(name) if made is None else made

    def get_tensors(self) -> Dict[str, Any]:
        names = self._original.offset_keys()
        made = self._file.tried([(name, ...) for name in names], self._device)
        if made is None:
            return {name: self.get_tensor(name) for name in names}
        return dict(zip(names, made))


class Slice:
    """A tensor that an index reads: whole rows by gpuio, other indices by the original."""

    def __init__(self, original: Any, file: _File, name: str, device: Optional[str]) -> None:
        self._original, self._file, self._name, self._device = original, file, name, device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __getitem__(self, index: Any) -> Any:
        made = self._read(index, self._device)
        return self._original[index] if made is None else made

    def _read(self, index: Any, device: Optional[str]) -> Optional[Any]:
        made = self._file.tried([(self._name, index)], device)
        return None if made is None else made[0]
