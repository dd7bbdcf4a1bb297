"""vLLM's load format ``gpuio``: the entry point ``vllm.general_plugins`` of the wheel.

vLLM's own loader (`DefaultModelLoader`) finds, downloads and filters the files; only the function
that yields their tensors is another: gpuio reads parts of a file into memory that PyTorch
allocates, one part ahead, and each tensor is a copy out of its part, so that one that is kept keeps
no other. A rank of tensor parallelism reads whole files, as with vLLM's own loader.

A tensor that gpuio can't read is an error: the format was asked for by name.
"""

import itertools
import os
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Set, Tuple
from unittest import mock

from ._checkpoint_drain import ended, started_pool
from ._install import _Entry, _File, _say
from ._library import library

_FORMAT = "gpuio"
# Bytes that are read at once, or one tensor. Two such parts are in memory at a time.
_PART = 256 << 20


def register() -> None:
    """Makes ``--load-format gpuio`` known to vLLM, which calls this in each of its processes.

    A vLLM without this interface (before 0.10) works on without the format, and a line says so.
    """
    try:
        from vllm.model_executor.model_loader import register_model_loader

        register_model_loader(_FORMAT)(_loader())
    except (ImportError, AttributeError) as error:
        _say(f"this vLLM has no --load-format {_FORMAT}: {error}")


def _loader() -> Any:
    import copy

    from vllm.model_executor.model_loader import default_loader

    class GpuioModelLoader(default_loader.DefaultModelLoader):
        def __init__(self, load_config: Any) -> None:
            # To vLLM's loader the files are those of its format safetensors.
            config = copy.copy(load_config)
            config.load_format = "safetensors"
            super().__init__(config)

        def _get_weights_iterator(self, source: Any) -> Iterator[Tuple[str, Any]]:
            # vLLM's calls the function at once, and iterates later over what it returned.
            with mock.patch.object(default_loader, "safetensors_weights_iterator", _weights):
                return super()._get_weights_iterator(source)

    return GpuioModelLoader


def _weights(
    files: List[str],
    use_tqdm_on_load: bool = True,
    safetensors_load_strategy: Optional[str] = None,
    local_expert_ids: Optional[Set[int]] = None,
    **_prefetch: Any,
) -> Iterator[Tuple[str, Any]]:
    """In place of vLLM's ``safetensors_weights_iterator``: names, and tensors on this GPU.

    Experts of other ranks are not read. Strategies of reading have no effect, but for ``torchao``,
    which is of the tensors, and refused.
    """
    if safetensors_load_strategy == "torchao":
        raise ValueError(f"--load-format {_FORMAT} does not load checkpoints of torchao")
    wanted: Callable[[str], bool] = lambda name: True
    if local_expert_ids is not None:
        from vllm.model_executor.model_loader.ep_weight_filter import should_skip_weight

        wanted = lambda name: not should_skip_weight(name, local_expert_ids)
    import torch

    device = _device(torch)
    _say(f"{len(files)} files for {device} are read by {library().path}")
    reader, ahead, begun = started_pool(1, "gpuio-load"), None, []  # type: Any, Any, List[Any]
    try:
        for part in itertools.chain(_parts(files, wanted), [None]):
            last, ahead = ahead, None
            if part is not None:
                memory = torch.empty(part.nbytes, dtype=torch.uint8, device=device)
                # Kernels before may still use memory that the allocator gives again.
                torch.cuda.current_stream(device).synchronize()
                begun[:-1] = []
                begun.append(reader.submit(part.read, memory.data_ptr()))
                ahead = part, memory, begun[-1]
            if last is not None:
                done, filled, read = last
                read.result()
                yield from done.tensors(filled)
    finally:
        # No byte goes into memory that is free again.
        ended(begun)
        reader.shutdown(wait=False)


def _device(torch: Any) -> Any:
    return torch.device("cuda", torch.cuda.current_device())


class _Part(NamedTuple):
    """Neighbours in a file, which one read fills."""

    file: _File
    named: List[Tuple[str, _Entry]]
    nbytes: int

    def read(self, address: int) -> None:
        first = self.named[0][1].offset
        moved = library().read(self.file.fd, first, address, self.nbytes) if self.nbytes else None
        if moved is not None and moved.bytes != self.nbytes:
            raise ValueError(f"{self.file.path} became shorter while it was read")

    def tensors(self, memory: Any) -> Iterator[Tuple[str, Any]]:
        first = self.named[0][1].offset
        for name, entry in self.named:
            at = entry.offset - first
            tensor = memory[at : at + _nbytes(entry)].view(entry.kind).reshape(entry.shape)
            yield name, tensor if len(self.named) == 1 else tensor.clone()


def _nbytes(entry: _Entry) -> int:
    nbytes = entry.itemsize
    for size in entry.shape:
        nbytes *= size
    return nbytes


def _parts(files: List[str], wanted: Callable[[str], bool]) -> Iterator[_Part]:
    for path in sorted(files, key=os.path.basename):
        file = _File(path)
        if file.lacks:
            raise ValueError(f"{path}: this PyTorch has no type of tensor {file.lacks[0]!r}")
        named, end = [], 0  # type: List[Tuple[str, _Entry]], int
        for name, entry in sorted(file.entries.items(), key=lambda item: item[1].offset):
            if not wanted(name):
                continue
            nbytes = _nbytes(entry)
            if named:
                first = named[0][1].offset
                # PyTorch's views begin at a multiple of their element.
                is_apart = entry.offset != end or (entry.offset - first) % entry.itemsize
                if is_apart or end - first + nbytes > _PART:
                    yield _Part(file, named, end - first)
                    named = []
            named.append((name, entry))
            end = entry.offset + nbytes
        if named:
            yield _Part(file, named, end - named[0][1].offset)
