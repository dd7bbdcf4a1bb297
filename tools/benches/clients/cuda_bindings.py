#!/usr/bin/env python3
"""Drives a cuFile library through NVIDIA's Python bindings: cuda.bindings.cufile.

  gpuio exec -- python cuda_bindings.py DIRECTORY

Each test writes or reads a file of its own in DIRECTORY and checks the bytes in GPU memory. Needs
the cuda-bindings wheel and NumPy. Also runs on the software GPU (GPUIO_CUFILE_DRIVER).
"""
import ctypes
import os
import sys
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import numpy
from cuda.bindings import cufile

from gpu_memory import Driver, Memory, loaded

BLOCK, COUNT = 64 << 10, 32
COMPLETE = 0x10


def data(size, seed):
    return numpy.random.default_rng(seed).integers(0, 256, size, dtype=numpy.uint8)


class File:
    """A registered file with these bytes."""

    def __init__(self, path, content=None, flags=os.O_RDWR):
        if content is not None:
            with open(path, "wb") as file:
                file.write(content.tobytes())
        self.fd = os.open(path, flags | os.O_CREAT, 0o644)
        describe = cufile.Descr()
        describe.type = int(cufile.FileHandleType.OPAQUE_FD)
        describe.handle.fd = self.fd
        self.handle = cufile.handle_register(describe.ptr)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        cufile.handle_deregister(self.handle)
        os.close(self.fd)


def same(place, wanted):
    assert numpy.array_equal(place.bytes(0, wanted.size), wanted), "other bytes in GPU memory"


def versions(driver, path):
    major = cufile.get_version()
    assert major >= 1000, major


def calls_that_wait(driver, path):
    wanted = data(3_000_001, 1)
    with File(path, wanted) as file:
        place = Memory(driver, wanted.size + 4096)
        cufile.buf_register(place.address, place.size, 0)
        assert cufile.read(file.handle, place.address, wanted.size, 0, 0) == wanted.size
        same(place, wanted)
        # The file's end cuts, and behind it is nothing.
        assert cufile.read(file.handle, place.address, 4096, wanted.size - 10, 0) == 10
        assert cufile.read(file.handle, place.address, 4096, wanted.size + 10, 0) == 0
        place.put(wanted[::-1])
        assert cufile.write(file.handle, place.address, wanted.size, 7, 0) == wanted.size
        cufile.buf_deregister(place.address)
    written = numpy.fromfile(path, numpy.uint8)
    assert numpy.array_equal(written[7:], wanted[::-1]), "other bytes in the file"
    assert numpy.array_equal(written[:7], wanted[:7]), "bytes before the write changed"


def batches(driver, path):
    wanted = data(BLOCK * COUNT, 2)
    with File(path, wanted) as file:
        place = Memory(driver, wanted.size)
        batch = cufile.batch_io_set_up(COUNT)
        for reading in (True, False):
            if not reading:
                place.put(wanted[::-1])
            entries, events = cufile.IOParams(COUNT), cufile.IOEvents(COUNT)
            for n in range(COUNT):
                entry = entries[n]
                entry.mode = int(cufile.BatchMode.BATCH)
                entry.fh = file.handle
                entry.opcode = int(cufile.Opcode.READ if reading else cufile.Opcode.WRITE)
                entry.cookie = n
                entry.u.batch.dev_ptr_base = place.address
                entry.u.batch.dev_ptr_offset = n * BLOCK
                entry.u.batch.file_offset = n * BLOCK
                entry.u.batch.size_ = BLOCK
            cufile.batch_io_submit(batch, COUNT, entries.ptr, 0)
            seen = set()
            while len(seen) < COUNT:
                room = ctypes.c_uint(COUNT - len(seen))
                cufile.batch_io_get_status(batch, 1, ctypes.addressof(room), events.ptr, 0)
                for n in range(room.value):
                    event = events[n]
                    ended = (event.status, event.ret)
                    assert ended == (COMPLETE, BLOCK), ended
                    assert event.cookie not in seen, "an event came twice"
                    seen.add(event.cookie)
            assert seen == set(range(COUNT)), seen
            if reading:
                same(place, wanted)
        cufile.batch_io_destroy(batch)
    assert numpy.array_equal(numpy.fromfile(path, numpy.uint8), wanted[::-1])


def streams(driver, path):
    wanted = data(BLOCK * COUNT, 3)
    stream = ctypes.c_void_p()
    driver.call("cuStreamCreate", ctypes.byref(stream), 1)
    with File(path, wanted) as file:
        place = Memory(driver, wanted.size)
        cufile.stream_register(stream.value, 0)
        fields = [(ctypes.c_size_t(BLOCK), ctypes.c_int64(n * BLOCK), ctypes.c_int64(n * BLOCK),
                   ctypes.c_ssize_t(-2)) for n in range(COUNT)]
        for asked in fields:
            by_reference = map(ctypes.addressof, asked)
            cufile.read_async(file.handle, place.address, *by_reference, stream.value)
        driver.call("cuStreamSynchronize", stream)
        assert all(asked[3].value == BLOCK for asked in fields), [a[3].value for a in fields]
        same(place, wanted)
        place.put(wanted[::-1])
        for asked in fields:
            asked[3].value = -2
            by_reference = map(ctypes.addressof, asked)
            cufile.write_async(file.handle, place.address, *by_reference, stream.value)
        driver.call("cuStreamSynchronize", stream)
        assert all(asked[3].value == BLOCK for asked in fields), [a[3].value for a in fields]
        cufile.stream_deregister(stream.value)
    driver.call("cuStreamDestroy_v2", stream)
    assert numpy.array_equal(numpy.fromfile(path, numpy.uint8), wanted[::-1])


def parameters(driver, path):
    key = cufile.SizeTConfigParameter.EXECUTION_MAX_IO_QUEUE_DEPTH
    assert cufile.get_parameter_size_t(int(key)) >= 1
    assert cufile.get_parameter_bool(int(cufile.BoolConfigParameter.PROPERTIES_USE_POLL_MODE)) in (
        True, False)
    assert cufile.driver_set_poll_mode(False, 4) is None


def statistics(driver, path):
    wanted = data(BLOCK, 4)
    cufile.set_stats_level(1)
    cufile.stats_start()
    with File(path, wanted) as file:
        place = Memory(driver, wanted.size)
        before = read_bytes()
        assert cufile.read(file.handle, place.address, BLOCK, 0, 0) == BLOCK
        assert read_bytes() - before == BLOCK, (before, read_bytes())
    cufile.stats_stop()


def read_bytes():
    # Level 1 begins alike in all releases; the room is more than any needs.
    room = (ctypes.c_uint64 * 2048)()
    cufile.get_stats_l1(ctypes.addressof(room))
    return room[96 // 8]


def main():
    directory = sys.argv[1]
    driver, failed = Driver(), 0
    cufile.driver_open()
    print(f"library: {loaded('libcufile.so')}, GPU: {driver.name}")
    for test in (versions, calls_that_wait, batches, streams, parameters, statistics):
        try:
            test(driver, os.path.join(directory, f"bindings-{test.__name__}"))
            print(f"ok {test.__name__}")
        except Exception as error:
            failed += 1
            print(f"FAILED {test.__name__}: {error}")
            traceback.print_exc()
    cufile.driver_close()
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
