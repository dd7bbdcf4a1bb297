"""``torch.distributed.checkpoint`` over gpuio: a StorageWriter and a StorageReader."""

import dataclasses
import io
import os
import pickle
import secrets
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from torch.distributed.checkpoint import StorageReader, StorageWriter
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import LoadItemType, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from . import checkpoint
from ._checkpoint_format import DCP_METADATA, Leaf, leaf
from ._checkpoint_manifest import checked, open_regular, read_manifest


@dataclasses.dataclass
class _Part:
    """What the coordinator hands to each rank with its plan."""

    token: str
    rank: int
    world: int


def _ready(value: Any) -> Any:
    future: Any = Future()
    future.set_result(value)
    return future


def _stored_name(index: Any) -> str:
    offset = list(index.offset) if index.offset is not None else []
    return f"{index.fqn}@{','.join(map(str, offset))}" if any(offset) else index.fqn


class Writer(StorageWriter):
    """Writes a checkpoint of ``torch.distributed.checkpoint``: ``dcp.save(state,
    storage_writer=Writer(directory))`` returns when the bytes are staged. `wait` waits until all
    ranks' files are on the disk under the directory's name."""

    def __init__(self, directory: Union[str, "os.PathLike[str]"], *, survive: bool = False) -> None:
        super().__init__()
        self._directory, self._survive = os.fspath(directory), survive
        self.handle: Optional[checkpoint.Handle] = None
        self._job: Any = None
        self._coordinates = False

    def reset(self, checkpoint_id: Any = None) -> None:
        if checkpoint_id is not None:
            self._directory = os.fspath(checkpoint_id)
        self.handle = self._job = None

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self._coordinates = is_coordinator

    def prepare_local_plan(self, plan: Any) -> Any:
        return plan

    def prepare_global_plan(self, plans: List[Any]) -> List[Any]:
        token = secrets.token_hex(8)
        return [
            dataclasses.replace(plan, storage_data=_Part(token, rank, len(plans)))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: Any, planner: Any) -> Any:
        part = plan.storage_data
        leaves: Dict[str, Leaf] = {}
        kept = []
        for item in plan.items:
            name = _stored_name(item.index)
            data = planner.resolve_data(item)
            if item.type == WriteItemType.BYTE_IO:
                held = bytearray(data.getbuffer())
                data = torch.frombuffer(held, dtype=torch.uint8) if held else torch.empty(0).byte()
            if name in leaves:
                raise ValueError(f"the plan has {name!r} twice")
            leaves[name] = leaf(name, data)
            kept.append((item.index, name))
        self._job = checkpoint._Job(
            list(leaves.values()), None, self._directory, part.rank, part.world, part.token,
            self._survive, held=True,
        )
        self.handle = checkpoint._saver.save(self._job)
        where = {place.leaf.name: file.name for file in self._job.files for place in file.places}
        # The coordinator's part ends with the metadata, in `finish`.
        if not self._coordinates:
            self._job.finish({})
        return _ready([
            WriteResult(index=index, size_in_bytes=leaves[name].nbytes,
                        storage_data=(part.rank, where[name], name))
            for index, name in kept
        ])

    def finish(self, metadata: Metadata, results: List[List[WriteResult]]) -> None:
        metadata.storage_data = {one.index: one.storage_data for rank in results for one in rank}
        metadata.storage_meta = self.storage_meta()
        self._job.finish({DCP_METADATA: pickle.dumps(metadata)})

    def storage_meta(self) -> Optional[StorageMeta]:
        return StorageMeta(checkpoint_id=self._directory)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return isinstance(checkpoint_id, (str, os.PathLike)) and "://" not in str(checkpoint_id)

    def wait(self, timeout: Optional[float] = None) -> "checkpoint.Handle":
        """Waits until it is complete, as `Handle.wait`."""
        if self.handle is None:
            raise ValueError("nothing was saved with this writer yet")
        return self.handle.wait(timeout)


class Reader(StorageReader):
    """Reads what `Writer` wrote: ``dcp.load(state, storage_reader=Reader(directory))``. Each
    tensor's digest is compared where it was read to. The file ``.metadata`` is a pickle, as DCP's
    own: load only checkpoints that you trust."""

    def __init__(self, directory: Union[str, "os.PathLike[str]"], *, verify: bool = True) -> None:
        super().__init__()
        self._directory, self._verify = os.path.abspath(os.fspath(directory)), verify
        self._places: Dict[Any, Tuple[int, str, str]] = {}
        self._manifest: Dict[str, Any] = {}

    def reset(self, checkpoint_id: Any = None) -> None:
        if checkpoint_id is not None:
            self._directory = os.path.abspath(os.fspath(checkpoint_id))
        self._places, self._manifest = {}, {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        self._manifest = read_manifest(self._directory)
        damaged = checked(self._directory, self._manifest)
        if damaged:
            raise checkpoint.DamagedError(self._directory, damaged)
        if DCP_METADATA not in self._manifest["extras"]:
            raise ValueError(f"{self._directory} was not written by gpuio.checkpoint.Writer: "
                             "gpuio.checkpoint.load reads it")
        metadata: Metadata = pickle.loads(Path(self._directory, DCP_METADATA).read_bytes())
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self._manifest = self._manifest or read_manifest(self._directory)
        self._places = metadata.storage_data

    def prepare_local_plan(self, plan: Any) -> Any:
        return plan

    def prepare_global_plan(self, plans: List[Any]) -> List[Any]:
        return plans

    def read_data(self, plan: Any, planner: Any) -> Any:
        files: Dict[str, int] = {}
        try:
            for item in plan.items:
                rank, file, name = self._places[item.storage_index]
                one = self._manifest["ranks"][rank]
                if file not in files:
                    files[file] = open_regular(os.path.join(self._directory, file))
                self._item(item, planner, one, name, files[file])
        finally:
            for fd in files.values():
                os.close(fd)
        return _ready(None)

    def _item(self, item: Any, planner: Any, one: Dict[str, Any], name: str, fd: int) -> None:
        about = one["tensors"][name]
        kind = getattr(torch, about["dtype"])
        if item.type == LoadItemType.BYTE_IO:
            read = self._read(torch.empty(about["shape"], dtype=kind), one, name, fd)
            planner.load_bytes(item, io.BytesIO(read.numpy().tobytes()))
            return
        target = planner.resolve_tensor(item).detach()
        whole = list(item.lengths) == about["shape"] and not any(item.storage_offsets)
        if whole and target.is_contiguous() and target.dtype == kind:
            self._read(target, one, name, fd)
        else:
            stored = torch.empty(about["shape"], dtype=kind, device=target.device)
            read = self._read(stored, one, name, fd)
            for dimension, (start, length) in enumerate(zip(item.storage_offsets, item.lengths)):
                read = read.narrow(dimension, start, length)
            target.copy_(read)
        planner.commit_tensor(item, target)

    def _read(self, tensor: Any, one: Dict[str, Any], name: str, fd: int) -> Any:
        to = leaf(name, tensor)
        if to.device >= 0:
            torch.cuda.synchronize(to.device)
        checkpoint.read_stored(fd, one["tensors"][name], to.address, to.nbytes)
        if self._verify:
            checkpoint._compare(self._directory, one, to.device, [(name, to.address, to.nbytes)])
        return tensor

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return Writer.validate_checkpoint_id(checkpoint_id)
