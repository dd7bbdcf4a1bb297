"""Models in several files of safetensors: a directory, or its index."""

import json
import os
from typing import Dict, Optional, Set

_INDEX = ".index.json"
_ENDING = ".safetensors"


# Files, and the tensors that each must have; ``None`` where no index names them.
Files = Dict[str, Optional[Set[str]]]


def files_of(path: str) -> Files:
    """The files of the model that a directory or an index names; for any other file itself."""
    if path.endswith(_INDEX):
        return _of_index(path)
    if not os.path.isdir(path):
        return {path: None}
    names = sorted(os.listdir(path))
    indices = [name for name in names if name.endswith(_ENDING + _INDEX)]
    if len(indices) == 1:
        return _of_index(os.path.join(path, indices[0]))
    files = [os.path.join(path, name) for name in names if name.endswith(_ENDING)]
    if indices or not files:
        several = f"several indices, {', '.join(indices)}: name one"
        raise ValueError(f"{path} has {several if indices else 'no *.safetensors'}")
    return dict.fromkeys(files)


def _of_index(path: str) -> Files:
    with open(path, encoding="utf-8") as file:
        try:
            tensors = json.load(file)["weight_map"]
            files = sorted(set(tensors.values()))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = f"it is no whole JSON: {error}" if isinstance(error, ValueError) else "no weight_map"
            raise ValueError(f"{path} is no index of safetensors: {why}") from error
    if not files:
        raise ValueError(f"{path} names no file")
    for name in files:
        if not isinstance(name, str) or os.path.basename(name) != name:
            raise ValueError(f"{path}: {name!r} is no file beside it")
    paths = {name: os.path.join(os.path.dirname(path), name) for name in files}
    missing = [name for name in files if not os.path.exists(paths[name])]
    if missing:
        raise FileNotFoundError(2, f"{path} names {', '.join(missing)}, which is not beside it")
    wanted: Dict[str, Set[str]] = {name: set() for name in files}
    for tensor, name in tensors.items():
        wanted[name].add(tensor)
    return {paths[name]: wanted[name] for name in files}
