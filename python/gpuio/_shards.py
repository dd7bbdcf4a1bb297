"""Models in several files of safetensors: a directory, or its index."""

import json
import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from ._library import Moved
from ._memory import Tensor

_INDEX = ".index.json"
_ENDING = ".safetensors"


def files_of(path: str) -> Optional[List[str]]:
    """The files of the model that a directory or an index names; ``None`` for any other file."""
    if path.endswith(_INDEX):
        return _of_index(path)
    if not os.path.isdir(path):
        return None
    names = sorted(os.listdir(path))
    indices = [name for name in names if name.endswith(_ENDING + _INDEX)]
    if len(indices) == 1:
        return _of_index(os.path.join(path, indices[0]))
    files = [os.path.join(path, name) for name in names if name.endswith(_ENDING)]
    if indices or not files:
        several = f"several indices, {', '.join(indices)}: name one"
        raise ValueError(f"{path} has {several if indices else 'no *.safetensors'}")
    return files


def _of_index(path: str) -> List[str]:
    with open(path, encoding="utf-8") as file:
        try:
            files = sorted(set(json.load(file)["weight_map"].values()))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is no index of safetensors: no weight_map") from error
    if not files:
        raise ValueError(f"{path} names no file")
    for name in files:
        if not isinstance(name, str) or os.path.basename(name) != name:
            raise ValueError(f"{path}: {name!r} is no file beside it")
    return [os.path.join(os.path.dirname(path), name) for name in files]


class Shards(Mapping[str, Tensor]):
    """The tensors of several files by name; otherwise as of one."""

    def __init__(self, files: List[str], load: Callable[[str], Any]) -> None:
        self._parts: List[Any] = []
        self._of: Dict[str, Any] = {}
        self.metadata: Dict[str, str] = {}
        """The strings in the files' headers; of one key the last file's."""
        for file in files:
            part = load(file)
            twice = next((name for name in part if name in self._of), None)
            if twice is not None:
                raise ValueError(f"{file} has {twice!r}, as a file before it; name one of them")
            self._parts.append(part)
            self._of.update(dict.fromkeys(part, part))
            self.metadata.update(part.metadata)
        self.moved = Moved(*map(sum, zip(*(part.moved for part in self._parts))))
        """What the reads moved."""
        devices = sorted({part.device for part in self._parts})
        self.device = ", ".join(devices)
        """Where the tensors are: not what was asked for after a `FallbackWarning`."""

    def __getitem__(self, name: str) -> Tensor:
        return self._of[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def torch(self) -> Dict[str, Any]:
        """Tensors of PyTorch over the same bytes, as for ``model.load_state_dict``."""
        return {name: one for part in self._parts for name, one in part.torch().items()}

    def numpy(self) -> Dict[str, Any]:
        """Arrays of NumPy: over the same bytes on the host, copies of those of a GPU."""
        return {name: one for part in self._parts for name, one in part.numpy().items()}

    def __repr__(self) -> str:
        of = f"{len(self)} tensors of {len(self._parts)} files"
        return f"<gpuio.Shards: {of} on {self.device}, {self.moved}>"
