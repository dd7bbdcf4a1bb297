"""A training step of a small transformer beside reads into GPU memory, in one process.

    gcc -O2 -shared -fPIC -I crates/dropin/include -I examples/c tools/benches/train_reads.c -o libtrain_reads.so -ldl -pthread
    python3 train_step.py ./libtrain_reads.so FILE THREADS BLOCK SECONDS    (the libcufile.so.0 that the loader finds)
    gpuio exec --cufile gpuio -- python3 train_step.py ./libtrain_reads.so FILE 8 1048576 3   (gpuio's)
    python3 train_step.py python FILE THREADS BLOCK SECONDS

Needs PyTorch with CUDA. Steps and reads take turns: steps alone, steps during reads, reads alone, twice each.
Each thread has one cuFileRead in flight. The threads that read are C threads, as in KvikIO; with "python" they are
Python's, which share Python's lock with the thread that launches the step's kernels. After the clock each thread's
last block is compared with the file. One line of JSON.
"""
import ctypes
import json
import os
import sys
import threading
import time

import torch

reader, path = sys.argv[1:3]
threads, block, seconds = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
size = os.stat(path).st_size


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


class Error(ctypes.Structure):
    _fields_ = [("err", ctypes.c_int), ("cuda", ctypes.c_int)]


class Descriptor(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("fd", ctypes.c_longlong), ("operations", ctypes.c_void_p)]


class PythonReads:
    """The reads by threads of Python."""

    def __init__(self, memory):
        cufile = self.cufile = ctypes.CDLL("libcufile.so.0")
        for name in ("cuFileDriverOpen", "cuFileHandleRegister", "cuFileBufRegister"):
            getattr(cufile, name).restype = Error
        cufile.cuFileRead.restype = ctypes.c_ssize_t
        cufile.cuFileRead.argtypes = [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong, ctypes.c_longlong]
        cufile.cuFileBufRegister.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        assert cufile.cuFileDriverOpen().err == 0
        self.running, self.ends = threading.Event(), threading.Event()
        self.bytes, self.at = [0] * threads, [0] * threads
        self.pool = [threading.Thread(target=self.read, args=(n, memory.data_ptr() + n * block)) for n in range(threads)]
        for thread in self.pool:
            thread.start()

    def read(self, number, memory):
        torch.cuda.set_device(0)
        fd, handle = os.open(path, os.O_RDONLY), ctypes.c_void_p()
        error = self.cufile.cuFileHandleRegister(ctypes.byref(handle), ctypes.byref(Descriptor(1, fd, None)))
        assert error.err == 0, error.err
        self.cufile.cuFileBufRegister(memory, block, 0)
        first = size // threads * number // block * block
        last = first + size // threads // block * block
        at = first
        while not self.ends.is_set():
            if not self.running.wait(0.05):
                continue
            got = self.cufile.cuFileRead(handle, memory, block, at, 0)
            assert got == block, got
            self.at[number] = at
            self.bytes[number] += got
            at = first if at + 2 * block > last else at + block

    def run(self, running):
        self.running.set() if running else self.running.clear()

    def moved(self):
        return sum(self.bytes)

    def stop(self):
        self.ends.set()
        for thread in self.pool:
            thread.join()
        return self.at


class ThreadReads:
    """The reads by threads of train_reads.c."""

    def __init__(self, memory):
        self.reads = ctypes.CDLL(reader)
        self.reads.reads_moved.restype = ctypes.c_ulonglong
        self.reads.reads_stop.restype = ctypes.c_long
        context = ctypes.c_void_p()
        assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
        error = self.reads.reads_start(
            path.encode(), ctypes.c_ulonglong(size), threads, ctypes.c_size_t(block),
            ctypes.c_void_p(memory.data_ptr()), context)
        assert error == 0, error

    def run(self, running):
        self.reads.reads_run(int(running))

    def moved(self):
        return self.reads.reads_moved()

    def stop(self):
        at = (ctypes.c_ulonglong * threads)()
        error = self.reads.reads_stop(at)
        assert error == 0, error
        return list(at)


memory = torch.empty(threads * block, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
reads = (PythonReads if reader == "python" else ThreadReads)(memory)
steps(1)
reads.run(True)
time.sleep(1.5)
rows = []
for _ in range(2):
    reads.run(False)
    time.sleep(0.2)
    alone = steps(seconds)
    reads.run(True)
    time.sleep(0.1)
    before, begin = reads.moved(), time.perf_counter()
    beside = steps(seconds)
    rate = (reads.moved() - before) / (time.perf_counter() - begin) / 2**30
    before, begin = reads.moved(), time.perf_counter()
    time.sleep(seconds / 2)
    rows.append((alone, beside, rate, (reads.moved() - before) / (time.perf_counter() - begin) / 2**30))
last = reads.stop()
wrong = 0
with open(path, "rb") as file:
    for number, at in enumerate(last):
        file.seek(at)
        wrong += bytes(memory[number * block:(number + 1) * block].cpu().numpy()) != file.read(block)
alone, beside, rate, rate_alone = (sum(column) / len(rows) for column in zip(*rows))
# PyTorch loads NVIDIA's as well; the calls go to the one that was loaded first.
maps = {word for word in open("/proc/self/maps").read().split() if "libcufile.so" in word}
print(json.dumps({
    "reader": os.path.basename(reader), "threads": threads, "block": block, "libraries": sorted(maps),
    "steps_per_s_alone": round(alone, 2), "steps_per_s_beside": round(beside, 2), "keeps": round(beside / alone, 3),
    "keeps_each": [round(row[1] / row[0], 3) for row in rows],
    "gib_per_s_beside": round(rate, 2), "gib_per_s_alone": round(rate_alone, 2), "wrong": wrong}), flush=True)
os._exit(1 if wrong else 0)
