"""Memory, streams and devices, by the CUDA driver."""
import contextlib
import ctypes

from . import ADDRESS, driver


class Memory:
    def __init__(self, size):
        address = ADDRESS()
        call = "cuMemAllocAsync" if allocator is malloc_async else "cuMemAlloc_v2"
        stream = (ctypes.c_void_p(0),) if allocator is malloc_async else ()
        driver.call(call, ctypes.byref(address), ctypes.c_size_t(size), *stream)
        self.ptr = address.value

    def __del__(self):
        # CUDA finds the context by the address; failures at the end of the process are no news.
        driver.library.cuMemFree_v2(ADDRESS(self.ptr))


class MemoryPointer:
    def __init__(self, mem, at):
        self.mem, self.at, self.ptr = mem, at, mem.ptr + at


class Stream:
    def __init__(self):
        stream = ctypes.c_void_p()
        driver.call("cuStreamCreate", ctypes.byref(stream), 0)
        self.ptr = stream.value

    def synchronize(self):
        driver.call("cuStreamSynchronize", ctypes.c_void_p(self.ptr))


class Device:
    def __init__(self, ordinal=0):
        self.ordinal = ordinal

    def __enter__(self):
        driver.enter()

    def __exit__(self, *_):
        pass

    def synchronize(self):
        driver.call("cuCtxSynchronize")


class runtime:
    @staticmethod
    def getDeviceCount():
        return 1  # memory is made on GPU 0 alone


def malloc_async(size):
    return Memory(size)


def set_allocator(other=None):
    global allocator
    allocator = other


@contextlib.contextmanager
def using_allocator(other):
    before = allocator
    set_allocator(other)
    try:
        yield
    finally:
        set_allocator(before)


allocator = None
