"""A training step of a small transformer beside reads into GPU memory, in one process.

    python3 train_step.py FILE THREADS BLOCK SECONDS                      (the libcufile.so.0 that the loader finds)
    gpuio exec --cufile gpuio -- python3 train_step.py FILE 8 1048576 3   (gpuio's)

Needs PyTorch with CUDA. Steps and reads take turns: steps alone, steps during reads, reads alone, twice each.
Each thread has one cuFileRead in flight. Reads and launches share Python's lock, with either library. After the
clock each thread's last block is compared with the file. One line of JSON.
"""
import ctypes
import json
import os
import sys
import threading
import time

import torch

path, threads, block, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
size = os.stat(path).st_size


class Error(ctypes.Structure):
    _fields_ = [("err", ctypes.c_int), ("cuda", ctypes.c_int)]


class Descriptor(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("fd", ctypes.c_longlong), ("operations", ctypes.c_void_p)]


cufile = ctypes.CDLL("libcufile.so.0")
for name in ("cuFileDriverOpen", "cuFileHandleRegister", "cuFileBufRegister"):
    getattr(cufile, name).restype = Error
cufile.cuFileRead.restype = ctypes.c_ssize_t
cufile.cuFileRead.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong, ctypes.c_longlong]
cufile.cuFileBufRegister.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
data = torch.randn(16, 512, 1024, device="cuda")


def steps(duration):
    """Steps per second."""
    torch.cuda.current_stream().synchronize()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < duration:
        with torch.autocast("cuda", torch.bfloat16):
            loss = (model(data) - data).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.current_stream().synchronize()
        count += 1
    return count / (time.perf_counter() - begin)


assert cufile.cuFileDriverOpen().err == 0
running, stop = threading.Event(), threading.Event()
moved, wrong = [0] * threads, [0] * threads


def read(number):
    torch.cuda.set_device(0)
    memory = torch.empty(block, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    fd, handle = os.open(path, os.O_RDONLY), ctypes.c_void_p()
    error = cufile.cuFileHandleRegister(ctypes.byref(handle), ctypes.byref(Descriptor(1, fd, None)))
    assert error.err == 0, error.err
    cufile.cuFileBufRegister(memory.data_ptr(), block, 0)
    first = number * (size // threads) // block * block
    last = first + size // threads // block * block
    at = first
    while not stop.is_set():
        if not running.wait(0.05):
            continue
        got = cufile.cuFileRead(handle, memory.data_ptr(), block, at, 0)
        assert got == block, got
        moved[number] += got
        at = first if at + block >= last else at + block
    at = first
    assert cufile.cuFileRead(handle, memory.data_ptr(), block, at, 0) == block
    wrong[number] = int(bytes(memory.cpu().numpy()) != os.pread(fd, block, at))


pool = [threading.Thread(target=read, args=(number,)) for number in range(threads)]
for thread in pool:
    thread.start()
steps(1)
running.set()
time.sleep(1.5)
rows = []
for _ in range(2):
    running.clear()
    time.sleep(0.2)
    alone = steps(seconds)
    running.set()
    time.sleep(0.1)
    before, begin = sum(moved), time.perf_counter()
    beside = steps(seconds)
    reads = (sum(moved) - before) / (time.perf_counter() - begin) / 2**30
    before, begin = sum(moved), time.perf_counter()
    time.sleep(seconds / 2)
    rows.append((alone, beside, reads, (sum(moved) - before) / (time.perf_counter() - begin) / 2**30))
stop.set()
for thread in pool:
    thread.join()
alone, beside, reads, reads_alone = (sum(column) / len(rows) for column in zip(*rows))
maps = open("/proc/self/maps").read().split()
print(json.dumps({
    "threads": threads, "block": block, "library": next(word for word in maps if "libcufile.so" in word),
    "steps_per_s_alone": round(alone, 2), "steps_per_s_beside": round(beside, 2), "keeps": round(beside / alone, 3),
    "keeps_each": [round(row[1] / row[0], 3) for row in rows],
    "gib_per_s_beside": round(reads, 2), "gib_per_s_alone": round(reads_alone, 2), "wrong": sum(wrong)}), flush=True)
os._exit(1 if sum(wrong) else 0)
