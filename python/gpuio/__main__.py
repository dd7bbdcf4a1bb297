"""``python -m gpuio SCRIPT [ARGS…]`` and ``python -m gpuio -m MODULE [ARGS…]``."""

import atexit
import importlib.util
import os
import runpy
import sys
from typing import List

from ._environment import variable
from ._install import install, report

_USAGE = """usage: python -m gpuio SCRIPT [ARGS...]
       python -m gpuio -m MODULE [ARGS...]

Runs a program of Python after gpuio.install(): tensors that safetensors, Transformers, Diffusers
and Accelerate load for CUDA devices are read by gpuio. A line at the end says how many.
GPUIO_INSTALL=off turns that off; with GPUIO_CUFILE_DRIVER=software all tensors for PyTorch go
through the software GPU into host memory."""


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def main(words: List[str]) -> None:
    is_module = words[:1] == ["-m"]
    rest = words[1:] if is_module else words
    if not rest or (not is_module and rest[0].startswith("-")):
        asked = rest[:1] in (["-h"], ["--help"])
        print(_USAGE, file=sys.stdout if asked else sys.stderr)
        sys.exit(0 if asked else 2)
    if not is_module and not os.path.exists(rest[0]):
        print(f"error: {rest[0]}: there is no such script", file=sys.stderr)
        sys.exit(2)
    if is_module and not _is_there(rest[0]):
        print(f"error: {rest[0]}: there is no such module", file=sys.stderr)
        sys.exit(2)
    try:
        install()
        if variable("GPUIO_INSTALL") != "off":
            atexit.register(report)
    except (ImportError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ValueError) else 3)
    sys.argv = rest
    # Python put the working directory there, as for a module; a script has its own.
    if not is_module and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(rest[0]))
    if is_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(rest[0], run_name="__main__")


main(sys.argv[1:])
