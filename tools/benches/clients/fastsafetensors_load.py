#!/usr/bin/env python3
"""Loads a safetensors file that it makes by fastsafetensors, through cuFile, and compares.

  gpuio exec -- python fastsafetensors_load.py DIRECTORY

Needs PyTorch with CUDA, safetensors and fastsafetensors.
"""
import os
import sys

import torch
from fastsafetensors import SafeTensorsFileLoader, SingleGroup
from safetensors.torch import save_file


def main():
    path = os.path.join(sys.argv[1], "fast.safetensors")
    wanted = {f"t{n}": torch.randn(n * 100_000 + 3) for n in range(1, 9)}
    save_file(wanted, path)
    loader = SafeTensorsFileLoader(SingleGroup(), torch.device("cuda:0"), nogds=False)
    loader.add_filenames({0: [path]})
    files = loader.copy_files_to_device()
    try:
        for name, tensor in wanted.items():
            assert torch.equal(files.get_tensor(name).cpu(), tensor), name
    finally:
        files.close()
        loader.close()
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "libcufile.so" in line}
    print(f"ok {len(wanted)} tensors; library: {', '.join(sorted(paths)) or 'none'}")


if __name__ == "__main__":
    main()
