#!/usr/bin/env python3
"""The other comparison partner: KvikIO reads a whole file into GPU memory by its POSIX path.

  kvikio_peer.py FILE THREADS TASK_BYTES SECONDS

Needs the kvikio and cupy wheels. Prints one line as cufile_peer does; a task is KvikIO's unit of
work, so IOPS are tasks and there are no latencies.
"""
import os
import resource
import sys
import time

import cupy
import kvikio
import kvikio.defaults

path, threads, task, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
size = os.path.getsize(path)
kvikio.defaults.set(
    {"compat_mode": kvikio.CompatMode.ON, "num_threads": threads, "task_size": task}
)
place = cupy.empty(size, dtype=cupy.uint8)


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


with kvikio.CuFile(path, "r") as file:
    file.pread(place).get()  # makes its threads and bounce buffers
    cupy.cuda.Device().synchronize()
    used, start, passes = cpu(), time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        assert file.pread(place).get() == size
        passes += 1
    cupy.cuda.Device().synchronize()
    took, used = time.perf_counter() - start, cpu() - used
moved = passes * size
print(
    f"kvikio threads {threads} block {task}: {moved / took / 2**30:.3f} GiB/s "
    f"{moved / task / took:.0f} IOPS p50 0 us p99 0 us {used * 1e6 / (moved / 2**20):.1f} us/MiB"
)
