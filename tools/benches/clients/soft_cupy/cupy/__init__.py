"""As much of CuPy as KvikIO's tests of files use, over the CUDA driver and NumPy alone.

A stand-in for tests on gpuio's software GPU, which CuPy itself can't run on: memory is the GPU's,
arithmetic is NumPy's on copies. It is no CuPy and never on a path where CuPy is.
"""
import ctypes
import os
import sys

import numpy
from numpy import dtype, float64, uint8

sys.path.append(os.path.join(os.path.dirname(__file__), "../../.."))

from gpu_memory import ADDRESS, Driver

driver = Driver()

from . import cuda, testing


class ndarray:
    """An array of one piece in GPU memory, or a part of one."""

    def __init__(self, shape, dtype=float64, memptr=None, strides=None):
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(length < 0 for length in self.shape):
            raise ValueError("negative dimensions are not allowed")
        self.dtype = numpy.dtype(dtype)
        self.size = int(numpy.prod(self.shape))
        self.itemsize, self.nbytes = self.dtype.itemsize, self.size * self.dtype.itemsize
        self.strides = strides
        self.memory = memptr or cuda.MemoryPointer(cuda.Memory(max(self.nbytes, 1)), 0)
        self.__cuda_array_interface__ = {
            "shape": self.shape, "typestr": self.dtype.str, "strides": strides, "version": 3,
            "data": (self.memory.ptr, False)}

    def __len__(self):
        return self.shape[0]

    def get(self):
        out = numpy.empty(self.shape, self.dtype)
        if self.strides:
            step = self.strides[0]
            whole = numpy.empty((self.size - 1) * step + self.itemsize, numpy.uint8)
            self._out(whole)
            return numpy.ndarray(self.shape, self.dtype, whole, 0, self.strides).copy()
        self._out(out)
        return out

    def _out(self, out):
        if out.nbytes:
            driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data),
                        ADDRESS(self.memory.ptr), ctypes.c_size_t(out.nbytes))

    def set(self, data):
        data = numpy.ascontiguousarray(numpy.broadcast_to(data, self.shape), self.dtype)
        if data.nbytes:
            driver.call("cuMemcpyHtoD_v2", ADDRESS(self.memory.ptr),
                        ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))

    def __getitem__(self, part):
        start, stop, step = part.indices(len(self))
        memory = cuda.MemoryPointer(self.memory.mem, self.memory.at + start * self.itemsize)
        strides = (step * self.itemsize,) if step != 1 else None
        return ndarray(len(range(start, stop, step)), self.dtype, memory, strides)

    def __setitem__(self, part, value):
        self[part].set(value)

    def copy(self):
        return array(self.get())

    def view(self, dtype):
        size = self.nbytes // numpy.dtype(dtype).itemsize
        return ndarray(size, dtype, self.memory)

    def tofile(self, file):
        self.get().tofile(file)

    def tobytes(self):
        return self.get().tobytes()

    __bytes__ = tobytes

    def __array_function__(self, function, types, words, more):
        """NumPy's makers with like=, and the one that takes an array."""
        more.pop("like", None)
        if function is numpy.ascontiguousarray:
            return self.copy() if self.strides else self
        if function is numpy.empty_like:
            return ndarray(more["shape"], more["dtype"])
        return NotImplemented


def array(data):
    data = numpy.asarray(data)
    out = ndarray(data.shape, data.dtype)
    out.set(data)
    return out


def arange(*words, dtype=None):
    return array(numpy.arange(*words, dtype=dtype))


def linspace(*words, **more):
    return array(numpy.linspace(*words, **more))


def empty(shape, dtype=float64):
    return ndarray(shape, dtype)


def zeros(shape, dtype=float64):
    return array(numpy.zeros(shape, dtype))


def empty_like(other):
    return ndarray(other.shape, other.dtype)


def fromfile(*words, **more):
    made = numpy.fromfile(*words, **more)
    return array(made) if isinstance(made, numpy.ndarray) else made


def copyto(to, from_):
    to.set(host(from_))


def array_equal(one, two):
    return numpy.array_equal(host(one), host(two))


def host(data):
    return data.get() if isinstance(data, ndarray) else numpy.asarray(data)
