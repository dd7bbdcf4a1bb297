"""The calls of cuda.cuda (cuda-python before 13) that KvikIO's tests make, by ctypes.

The package `cuda` has no file of its own, so that this module joins those that are installed.
"""
import ctypes
import enum
import os

_named = os.environ.get("GPUIO_CUFILE_DRIVER", "")
_library = ctypes.CDLL(_named if "/" in _named else "libcuda.so.1")


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_INVALID_CONTEXT = 201


def cuInit(flags):
    return (CUresult(_library.cuInit(flags)),)


def cuCtxPopCurrent():
    context = ctypes.c_void_p()
    return CUresult(_library.cuCtxPopCurrent_v2(ctypes.byref(context))), context


def cuCtxPushCurrent(context):
    return (CUresult(_library.cuCtxPushCurrent_v2(context)),)
