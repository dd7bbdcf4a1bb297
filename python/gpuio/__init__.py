"""gpuio in Python: results as data frames, jobs from a notebook, files into tensors.

``load`` and ``bench`` run the program ``gpuio``; ``safetensors``, ``read_into``, ``Memory``,
``Rings`` and ``install`` call ``libgpuio.so.0``. Nothing here falls back silently: what took another
way than asked says so in a warning (`FallbackWarning`) or, after ``install``, in a line on standard
error, or is an error (`GpuioError`). docs/python.md has the page. ``gpuio.checkpoint`` is a module of
its own. Nothing else has to be installed, but PyTorch for ``.torch()`` and ``checkpoint``'s Reader and
Writer, NumPy for ``.numpy()`` and checkpoints of arrays, safetensors for ``install``, and pandas for
data frames (without it they are lists of rows).
"""

from ._install import Installed, install, installed, uninstall
from ._library import Gpus, GpuioError, Moved, gpus
from ._memory import Memory, Tensor, read_into
from ._program import Rows, bench, load, program, record, series
from ._rings import Rings, device_header
from ._safetensors import FallbackWarning, Loaded, safetensors

__all__ = [
    "FallbackWarning",
    "Gpus",
    "GpuioError",
    "Installed",
    "Loaded",
    "Memory",
    "Moved",
    "Rings",
    "Rows",
    "Tensor",
    "bench",
    "device_header",
    "gpus",
    "install",
    "installed",
    "load",
    "program",
    "read_into",
    "record",
    "safetensors",
    "series",
    "uninstall",
]
