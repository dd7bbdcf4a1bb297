"""Loaders of safetensors beside each other: loaders.sh has the usage.

The process that is started first makes the files and starts the others, which load. These speak over
pipes: `ready` once PyTorch, the loader and a CUDA context are there, then one line of JSON for each line
`go`. So page caches are emptied between, and several GPUs begin together.

A rate is bytes of the file by the time from `go` until `torch.cuda.synchronize()`, of the slowest GPU.
Host memory is the largest growth of MemTotal - MemAvailable during the first load: page-locked memory
is in it, the page cache is not.
"""

import argparse
import gc
import importlib.metadata
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy

MIB = 1 << 20
GIB = 1 << 30
# Name: bytes of a tensor, and its shape in BF16.
KINDS = {"large": (64 * MIB, [4096, 8192]), "small": (128 << 10, [256, 256])}
CASES = [
    "large disk warm", "large tmpfs warm", "small disk warm", "small tmpfs warm", "large disk cold",
]


def base(nbytes):
    """The words of tensor 0. Those of tensor N are these, exclusive or N."""
    return numpy.random.default_rng(11).integers(-(2**62), 2**62, nbytes // 8, dtype=numpy.int64)


def make(path, kind, count):
    nbytes, shape = KINDS[kind]
    header = json.dumps({
        f"model.layers.{n}.weight": {
            "dtype": "BF16", "shape": shape, "data_offsets": [n * nbytes, (n + 1) * nbytes]}
        for n in range(count)}).encode()
    header += b" " * (-len(header) % 8)
    words, start = base(nbytes), 8 + len(header)
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
    os.pwrite(file, len(header).to_bytes(8, "little") + header, 0)

    def write(n):
        view = memoryview(words ^ n).cast("B")
        assert os.pwrite(file, view, start + n * nbytes) == nbytes

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, range(count)))
    os.fsync(file)
    os.close(file)


# What a loader needs, and how it loads: all tensors of a file in memory of one GPU.


def gpuio(path, device):
    import gpuio

    return gpuio.safetensors(path, device).torch()


def gpuio_devices(path, devices):
    """All GPUs' tensors by one call: each byte is read once."""
    import gpuio

    return [loaded.torch() for loaded in gpuio.safetensors(path, devices=devices)]


def safetensors(path, device):
    from safetensors.torch import load_file

    return load_file(path, device=device)


def instanttensor(path, device):
    import instanttensor

    with instanttensor.safe_open(
            path, framework="pt", device=device, process_group=_group()) as file:
        return dict(file.tensors())


def fastsafetensors(path, device):
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup

    loader = SafeTensorsFileLoader(_group() or SingleGroup(), device, nogds=True)
    loader.add_filenames({0: [path]})
    buffers = loader.copy_files_to_device()
    return {name: buffers.get_tensor(name) for name in loader.get_keys()}


def runai_model_streamer(path, device):
    from runai_model_streamer import SafetensorsStreamer

    with SafetensorsStreamer() as streamer:
        streamer.stream_file(path, device=device)
        return dict(streamer.get_tensors())


def _group():
    """The group of the processes of several GPUs. None of one."""
    import torch.distributed as dist

    return dist.group.WORLD if dist.is_available() and dist.is_initialized() else None


# Package, variables, function. Two that share a load among GPUs get a group of NCCL.
LOADERS = {
    "gpuio": ("gpuio", {}, gpuio),
    "gpuio, devices=": ("gpuio", {}, gpuio_devices),
    "InstantTensor": ("instanttensor", {}, instanttensor),
    "InstantTensor, BUFFERED": (
        "instanttensor", {"INSTANTTENSOR_BACKEND": "BUFFERED"}, instanttensor),
    "fastsafetensors, nogds": ("fastsafetensors", {}, fastsafetensors),
    "Run:ai": ("runai-model-streamer", {}, runai_model_streamer),
    "safetensors": ("safetensors", {}, safetensors),
}
SHARED = ("instanttensor", "fastsafetensors")
# One process loads into all GPUs; the others have one for each GPU.
ALONE = "gpuio, devices="


def worker(name, path, kind, number, gpus, meeting):
    os.environ.update(LOADERS[name][1])
    import torch

    package, _, load = LOADERS[name]
    __import__(package.replace("-", "_"))
    device = f"cuda:{number}"
    torch.cuda.set_device(number)
    devices = [f"cuda:{nth}" for nth in range(gpus)] if name == ALONE else [device]
    for one in devices:
        torch.zeros(1, device=one)
    if gpus > 1 and package in SHARED:
        import torch.distributed as dist

        dist.init_process_group("nccl", init_method=f"file://{meeting}", rank=number,
                                world_size=gpus, device_id=torch.device(device))
        dist.all_reduce(torch.zeros(1, device=device))

    def wait():
        for one in devices:
            torch.cuda.synchronize(one)

    wait()
    print("ready", flush=True)
    checked = None
    for _ in sys.stdin:
        used, begun = time.process_time(), time.monotonic()
        loaded = load(path, devices if name == ALONE else device)
        wait()
        end, used = time.monotonic(), time.process_time() - used
        if checked is None:
            pairs = zip(loaded if name == ALONE else [loaded], devices)
            bad = [wrong(torch, one, kind, to) for one, to in pairs]
            checked = next((one for one in bad if one), 0)
            del pairs
        del loaded
        gc.collect()
        print(json.dumps({"begin": begun, "end": end, "cpu": used, "wrong": checked}), flush=True)


def wrong(torch, loaded, kind, device):
    """How many tensors are not those of `make`, on this device."""
    nbytes, shape = KINDS[kind]
    words = torch.from_numpy(base(nbytes)).to(device)
    differ = torch.zeros((), dtype=torch.int64, device=device)
    for n in range(len(loaded)):
        tensor = loaded[f"model.layers.{n}.weight"]
        if list(tensor.shape) != shape or str(tensor.device) != device:
            return f"tensor {n} is {list(tensor.shape)} on {tensor.device}"
        differ += (tensor.view(-1).view(torch.int64) != (words ^ n)).any()
    return int(differ)


class Memory(threading.Thread):
    """Samples of the memory in use."""

    def __init__(self):
        super().__init__(daemon=True)
        self.samples, self.done = [], False

    def run(self):
        while not self.done:
            with open("/proc/meminfo", encoding="ascii") as file:
                lines = dict(line.split(":") for line in file)
            used = [int(lines[key].split()[0]) << 10 for key in ("MemTotal", "MemAvailable")]
            self.samples.append((time.monotonic(), used[0] - used[1]))
            time.sleep(0.01)

    def growth(self, begin, end):
        before = [used for at, used in self.samples if at < begin][-1:]
        return max([used for at, used in self.samples if begin <= at <= end] + before) - before[0]


def cool():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")


def measure(name, path, kind, options, is_cold):
    """Seconds of each load, and what else is known, of one loader's processes."""
    meeting = tempfile.mktemp(prefix="loaders.")
    memory, started = Memory(), time.monotonic()
    memory.start()
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--worker", json.dumps(
                [name, path, kind, number, options.gpus, meeting])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(1 if name == ALONE else options.gpus)]
    watch = threading.Timer(options.limit, lambda: [one.kill() for one in processes])
    watch.start()
    try:
        answers = []
        for nth in range(options.loads + 1):
            lines = []
            for one in processes:
                line = one.stdout.readline()
                # Lines that a loader prints are not ours.
                while line and line != "ready\n" and not line.startswith('{"begin"'):
                    line = one.stdout.readline()
                if not line:
                    for other in processes:
                        other.kill()
                    words = [word for word in one.communicate()[1].splitlines() if word.strip()]
                    raise RuntimeError(words[-1] if words else f"ended with {one.returncode}")
                lines.append(line)
            if nth:
                answers.append([json.loads(line) for line in lines])
            if nth < options.loads:
                if is_cold:
                    cool()
                for one in processes:
                    one.stdin.write("go\n")
                    one.stdin.flush()
        for one in processes:
            one.communicate()
    finally:
        watch.cancel()
        memory.done = True
        memory.join()
        for one in processes:
            one.kill()
            one.wait()
        if os.path.exists(meeting):
            os.remove(meeting)
    spans = [(min(one["begin"] for one in load), max(one["end"] for one in load))
             for load in answers]
    return {
        "seconds": [end - begin for begin, end in spans],
        "cpu": [sum(one["cpu"] for one in load) for load in answers],
        "memory": memory.growth(*spans[0]),
        "start": spans[0][1] - started,
        "wrong": [one["wrong"] for one in answers[0]],
    }


def version(name):
    try:
        return importlib.metadata.version(LOADERS[name][0])
    except importlib.metadata.PackageNotFoundError:
        return ""


def row(name, size, gpus, runs):
    if isinstance(runs, str):
        return f"| {name} {version(name)} | {runs} | | | | | |"
    first = [size / GIB / run["seconds"][0] for run in runs]
    later = [size / GIB / took for run in runs for took in run["seconds"][1:]]
    cpu = [[used * 1e6 / (size * gpus / MIB) for used in (run["cpu"][0], run["cpu"][-1])]
           for run in runs]
    bad = [number for run in runs for number in run["wrong"] if number != 0]
    middle = statistics.median
    return (
        f"| {name} {version(name)} | {' '.join(f'{rate:.1f}' for rate in first)} | "
        + (f"{middle(later):.1f} ({max(later):.1f})" if later else "-")
        + f" | {middle(run['start'] for run in runs):.2f} | "
        f"{middle(one[0] for one in cpu):.0f} / {middle(one[1] for one in cpu):.0f} | "
        f"{max(run['memory'] for run in runs) / MIB:.0f} | {f'WRONG: {bad[0]}' if bad else 'equal'} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--gib", type=int, default=8)
    parser.add_argument("--small", type=int, default=16000)
    parser.add_argument("--case", default=".")
    parser.add_argument("--loader", default=".")
    parser.add_argument("--loads", type=int, default=4)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--json")
    options = parser.parse_args()
    # Files are removed at the end by a signal, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results, failed = [], False
    cases = [case for case in CASES if re.search(options.case, case)]
    names = [name for name in LOADERS
             if re.search(options.loader, name) and (name != ALONE or options.gpus > 1)]
    with tempfile.TemporaryDirectory(dir=options.directory) as disk, \
            tempfile.TemporaryDirectory(dir="/dev/shm") as tmpfs:
        for case in cases:
            kind, where, state = case.split()
            path = os.path.join(disk if where == "disk" else tmpfs, f"{kind}.safetensors")
            if not os.path.exists(path):
                count = options.gib * GIB // KINDS[kind][0] if kind == "large" else options.small
                make(path, kind, count)
            size = os.path.getsize(path)
            runs = {name: [] for name in names}
            for turn in range(options.passes):
                for name in names if turn % 2 == 0 else names[::-1]:
                    try:
                        if isinstance(runs[name], list):
                            if state == "warm":
                                with open(path, "rb", buffering=0) as file:
                                    while file.read(64 * MIB):
                                        pass
                            runs[name].append(
                                measure(name, path, kind, options, state == "cold"))
                            failed |= any(number != 0 for number in runs[name][-1]["wrong"])
                    except RuntimeError as error:
                        runs[name], failed = f"failed: {error}"[:160].replace("|", "/"), True
            print(f"\n{case}: {size / GIB:.2f} GiB into {options.gpus} GPU(s), "
                  f"{options.passes} x {options.loads} loads, {os.cpu_count()} processors\n")
            print("| loader | first load, GiB/s | later: median (best) | Python's start to the last "
                  "tensor, s | CPU µs/MiB, first / last | host memory, MiB | bytes |")
            print("| --- | --- | --- | --- | --- | --- | --- |")
            for name in names:
                print(row(name, size, options.gpus, runs[name]), flush=True)
            results.append({"case": case, "bytes": size, "gpus": options.gpus, "runs": runs})
            # The next cases use other files, but for the cold one.
            if f"{kind} {where} cold" not in cases or state == "cold":
                os.remove(path)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    sys.exit(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(*json.loads(sys.argv[2]))
    else:
        main()
