"""GPU memory for the scripts in this directory, by the CUDA driver and ctypes alone.

The driver is libcuda.so.1, or the file that GPUIO_CUFILE_DRIVER names (gpuio's software GPU), as
for gpuio's libcufile.so.0. Also the pattern of tools/benches/dropin.cpp, for what `dropin make` made.
"""
import ctypes
import os

import numpy

SEED = 0x677075696F21
ADDRESS = ctypes.c_uint64


class Driver:
    def __init__(self, ordinal=0):
        named = os.environ.get("GPUIO_CUFILE_DRIVER", "")
        self.library = ctypes.CDLL(named if "/" in named else "libcuda.so.1")
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), ordinal)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.enter()
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, 128, device)
        self.name = text.value.decode()

    def enter(self):
        """Makes the GPU's primary context current in this thread."""
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: CUDA answers {code}")


class Memory:
    """Bytes of a GPU, exported by __cuda_array_interface__."""

    def __init__(self, driver, size):
        self.driver, self.size, self.nbytes = driver, size, size
        address = ADDRESS()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self.address = address.value
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (self.address, False), "version": 3}

    def fill(self, value):
        self.driver.call("cuMemsetD8_v2", ADDRESS(self.address), value, ctypes.c_size_t(self.size))
        self.bytes(0, 1)  # a fill is asynchronous; a copy out is not, and follows it

    def put(self, data, at=0):
        data = numpy.ascontiguousarray(data).view(numpy.uint8)
        self.driver.call("cuMemcpyHtoD_v2", ADDRESS(self.address + at),
                         ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))

    def bytes(self, at=0, size=None):
        out = numpy.empty(self.size - at if size is None else size, numpy.uint8)
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data),
                         ADDRESS(self.address + at), ctypes.c_size_t(out.nbytes))
        return out

    def free(self):
        self.driver.call("cuMemFree_v2", ADDRESS(self.address))


def mix(x):
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def pattern(at, size):
    """The bytes that `dropin make` puts at an offset; both are multiples of 8."""
    words = numpy.arange(at // 8, (at + size) // 8, dtype=numpy.uint64)
    with numpy.errstate(over="ignore"):
        words = mix(numpy.uint64(SEED) + words * numpy.uint64(0x9E3779B97F4A7C15))
    return words.view(numpy.uint8)


def loaded(name):
    """The file of a library of this process, by /proc/self/maps (proc_pid_maps(5))."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if os.path.basename(path).startswith(name):
                return path
    return ""
