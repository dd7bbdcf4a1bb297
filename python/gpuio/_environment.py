"""The environment, read as secure_getenv(3) reads it.

A variable may name a library to load or a program to start. Where this process has rights that its
caller lacks (set-user-ID, set-group-ID, file capabilities), the kernel sets AT_SECURE
(getauxval(3)), and every variable is the caller's word. Then none is read.
"""

import ctypes
import functools
import os
from typing import Optional

_AT_SECURE = 23


@functools.lru_cache(maxsize=None)
def is_secure() -> bool:
    """Whether this process has rights that its caller lacks."""
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return True
    value = ctypes.CDLL(None).getauxval
    value.restype, value.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    return value(_AT_SECURE) != 0


def variable(name: str) -> Optional[str]:
    """A variable's value; None if it is not set, and where none is read."""
    return None if is_secure() else os.environ.get(name)
