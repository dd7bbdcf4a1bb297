#!/usr/bin/env python3
"""Loads one file of safetensors to a GPU by several loaders, in turn, and prints ratios.

  python3 python_load.py DIRECTORY [--gib 4] [--rounds 7] [--device cuda:0] [--cold] [--json FILE]

The file is in the page cache; with `--cold` the cache is emptied before each load (as root).

Loaders: `gpuio.safetensors`, `gpuio.read_into` (the data alone, into one tensor of PyTorch's),
`safetensors.torch.load_file`, and `fastsafetensors` where it is installed (`nogds=True`, its
threads as many as processors). Each round runs every loader once, in an order that turns. A time is from
the call until `torch.cuda.synchronize()`; the tensors are freed outside of it. Before the rounds
every loader's tensors are compared with those of the first, and gpuio's report says how many bytes came out of
the page cache.

Needs PyTorch with CUDA, safetensors and gpuio's module. The file is made in DIRECTORY, and removed.
"""

import argparse
import gc
import importlib.metadata
import json
import os
import statistics
import sys
import time

import torch
from safetensors.torch import load_file, save_file

import gpuio

MIB = 1 << 20
GIB = 1 << 30


def make(path, gib):
    """Weights as of a model: matrices of 64 MiB in bfloat16, and vectors."""
    generator = torch.Generator().manual_seed(1)
    tensors = {}
    for number in range(int(gib * 16)):
        matrix = torch.randint(-2**15, 2**15, (4096, 8192), dtype=torch.int16, generator=generator)
        tensors[f"layer.{number}.weight"] = matrix.view(torch.bfloat16)
        tensors[f"layer.{number}.bias"] = torch.full((8192,), number, dtype=torch.bfloat16)
    save_file(tensors, path)
    return list(tensors)


def loaders(path, device, names):
    size = os.path.getsize(path)
    last = {}

    def by_gpuio():
        loaded = gpuio.safetensors(path, device)
        last["moved"] = loaded.moved
        return loaded.torch()

    def by_read_into():
        tensor = torch.empty(size, dtype=torch.uint8, device=device)
        torch.cuda.synchronize()
        gpuio.read_into(tensor, path)
        return tensor

    found = {
        "gpuio.safetensors": by_gpuio,
        "gpuio.read_into": by_read_into,
        "safetensors": lambda: load_file(path, device=device),
    }
    try:
        from fastsafetensors import SafeTensorsFileLoader, SingleGroup
    except ImportError as error:
        print(f"fastsafetensors: not measured ({error})", file=sys.stderr)
        return found, last

    def by_fastsafetensors():
        loader = SafeTensorsFileLoader(SingleGroup(), torch.device(device), nogds=True,
                                       max_threads=os.cpu_count())
        loader.add_filenames({0: [path]})
        buffers = loader.copy_files_to_device()
        tensors = {name: buffers.get_tensor(name) for name in names}
        return tensors, buffers, loader

    found["fastsafetensors"] = by_fastsafetensors
    return found, last


def compared(found):
    """Every loader's tensors are those of `safetensors`."""
    right = found["safetensors"]()
    for name, load in found.items():
        if name in ("safetensors", "gpuio.read_into"):
            continue
        got = load()
        got = got[0] if isinstance(got, tuple) else got
        wrong = [key for key in right if not torch.equal(
            got[key].view(torch.int16), right[key].view(torch.int16))]
        if wrong or got.keys() != right.keys():
            sys.exit(f"{name}: {len(wrong)} of {len(right)} tensors differ: {wrong[:3]}")
        del got
        gc.collect()


def once(load, cold):
    gc.collect()
    if cold:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3")
    torch.cuda.synchronize()
    begun = time.perf_counter()
    loaded = load()
    torch.cuda.synchronize()
    took = time.perf_counter() - begun
    if isinstance(loaded, tuple):
        loaded[1].close()
        loaded[2].close()
    del loaded
    gc.collect()
    return took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    path = os.path.join(options.directory, f"python_load.{os.getpid()}.safetensors")
    try:
        tensors = make(path, options.gib)
        size = os.path.getsize(path)
        with open(path, "rb", buffering=0) as file:
            while file.read(64 * MIB):
                pass
        found, last = loaders(path, options.device, tensors)
        compared(found)
        names = list(found)
        times = {name: [] for name in names}
        for number in range(options.rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                times[name].append(once(found[name], options.cold))
                gib = size / GIB / times[name][-1]
                print(f"round {number + 1}: {name}: {gib:.2f} GiB/s", flush=True)
    finally:
        if os.path.exists(path):
            os.remove(path)
    versions = {}
    for name in ("torch", "safetensors", "fastsafetensors"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    gpu = torch.cuda.get_device_name(options.device)
    print(f"\n{gpu}, {os.cpu_count()} processors, {size / GIB:.2f} GiB{', cold' if options.cold else ''}, {options.rounds} rounds, {versions}")
    print(f"gpuio's last read: {last['moved']}")
    print("| loader | GiB/s, median (min–max) | gpuio.safetensors / it, median of rounds (min–max) |")
    print("| --- | --- | --- |")
    for name in names:
        rates = [size / GIB / took for took in times[name]]
        ratios = [it / ours for it, ours in zip(times[name], times["gpuio.safetensors"])]
        middle = statistics.median
        print(f"| {name} | {middle(rates):.2f} ({min(rates):.2f}–{max(rates):.2f}) | "
              f"{middle(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"gpu": gpu, "bytes": size, "versions": versions,
                       "moved": last["moved"]._asdict(), "seconds": times}, file, indent=1)


if __name__ == "__main__":
    main()
