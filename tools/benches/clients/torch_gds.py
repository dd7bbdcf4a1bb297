#!/usr/bin/env python3
"""Saves and loads storages by PyTorch's torch.cuda.gds.

  gpuio exec -- python torch_gds.py DIRECTORY

Tensors of several sizes, memory registered and not, offsets in the file, and the error for a file
that is not there. Needs PyTorch with CUDA.
"""
import os
import sys
import traceback

import torch
from torch.cuda.gds import GdsFile, gds_deregister_buffer, gds_register_buffer

SIZES = (1, 4096, 1_000_003, 64 << 20)


def loaded():
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "libcufile.so" in line}
    return ", ".join(sorted(paths)) or "none"


def saves_and_loads(path, registered):
    for size in SIZES:
        wanted = torch.randint(0, 256, (size,), dtype=torch.uint8, device="cuda")
        back = torch.zeros_like(wanted)
        if registered:
            for tensor in (wanted, back):
                gds_register_buffer(tensor.untyped_storage())
        # PyTorch's own stream is not ordered with cuFile's calls.
        torch.cuda.synchronize()
        file = GdsFile(path, os.O_CREAT | os.O_RDWR)
        file.save_storage(wanted.untyped_storage(), offset=0)
        file.load_storage(back.untyped_storage(), offset=0)
        assert torch.equal(wanted, back), f"{size} bytes came back wrong"
        with open(path, "rb") as plain:
            assert plain.read(size) == wanted.cpu().numpy().tobytes(), f"{size}: the file is wrong"
        if registered:
            for tensor in (wanted, back):
                gds_deregister_buffer(tensor.untyped_storage())
        del file
        os.remove(path)


def unregistered(path):
    saves_and_loads(path, False)


def registered(path):
    saves_and_loads(path, True)


def many_in_one_file(path):
    tensors = [torch.randn(n * 1000 + 17, device="cuda") for n in range(1, 9)]
    torch.cuda.synchronize()
    file, at, places = GdsFile(path, os.O_CREAT | os.O_RDWR), 0, []
    for tensor in tensors:
        file.save_storage(tensor.untyped_storage(), offset=at)
        places.append(at)
        at += tensor.untyped_storage().nbytes()
    for tensor, place in zip(tensors, places):
        back = torch.empty_like(tensor)
        file.load_storage(back.untyped_storage(), offset=place)
        assert torch.equal(tensor, back), place


def no_file(path):
    try:
        GdsFile(path + ".gone", os.O_RDWR)
    except Exception as error:
        assert "No such file" in str(error) or "open" in str(error).lower(), error
        return
    raise AssertionError("a file that is not there was opened")


def main():
    directory, failed = sys.argv[1], 0
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    for test in (unregistered, registered, many_in_one_file, no_file):
        try:
            test(os.path.join(directory, f"torch-{test.__name__}"))
            print(f"ok {test.__name__}")
        except Exception as error:
            failed += 1
            print(f"FAILED {test.__name__}: {error}")
            traceback.print_exc()
    print(f"library: {loaded()}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
