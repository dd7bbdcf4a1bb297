#!/usr/bin/env python3
"""KvikIO reads a whole file into GPU memory, by whatever library the loader finds.

  dropin make FILE BYTES
  KVIKIO_COMPAT_MODE=OFF gpuio exec -- dropin_kvikio.py FILE     # cuFile, gpuio's
  KVIKIO_COMPAT_MODE=ON dropin_kvikio.py FILE                    # KvikIO's own POSIX path

Threads and task size are KvikIO's defaults unless given (1 thread, 4 MiB). Needs the kvikio wheel
and NumPy, no CuPy. After the clock, pieces are read over other bytes and compared with the pattern.
Prints one line of JSON as dropin does; an I/O is one task, and there are no latencies.
"""
import argparse
import json
import os
import resource
import sys
import time

import kvikio
import kvikio.defaults
import numpy

from gpu_memory import Driver, Memory, loaded, pattern

PIECE = 4 << 20


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--task", type=int)
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    given = {"num_threads": args.threads, "task_size": args.task}
    kvikio.defaults.set({key: value for key, value in given.items() if value})
    threads, task = kvikio.defaults.get("num_threads"), kvikio.defaults.get("task_size")
    size = os.path.getsize(args.file) // PIECE * PIECE
    driver = Driver()
    place = Memory(driver, size)
    with kvikio.CuFile(args.file, "r") as file:
        assert file.pread(place).get() == size  # makes its threads and bounce buffers
        used, start, passes = cpu(), time.perf_counter(), 0
        while time.perf_counter() - start < args.seconds:
            assert file.pread(place).get() == size
            passes += 1
        took, used = time.perf_counter() - start, cpu() - used
        place.fill(0xA5)
        assert file.pread(place).get() == size
    pieces = numpy.random.default_rng(1).integers(0, size // PIECE, 16)
    bad = sum(
        not numpy.array_equal(place.bytes(int(n) * PIECE, PIECE), pattern(int(n) * PIECE, PIECE))
        for n in pieces)
    moved = passes * size
    print(json.dumps({
        "mode": f"kvikio-{kvikio.defaults.get('compat_mode').name.lower()}",
        "library": loaded("libcufile.so"), "version": kvikio.__version__, "gpu": driver.name,
        "threads": threads, "block": task, "seconds": took, "ios": moved // task,
        "gib_per_s": moved / took / 2**30, "iops": moved / task / took, "p50_us": 0, "p99_us": 0,
        "cpu_s": used, "cpu_us_per_mib": used * 1e6 / (moved / 2**20), "checked_blocks": 16,
        "bad_blocks": int(bad)}))
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
