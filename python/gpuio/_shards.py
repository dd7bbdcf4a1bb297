"""Models in several files of safetensors: a directory, or its index."""

import json
import os
from typing import List, Optional

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
