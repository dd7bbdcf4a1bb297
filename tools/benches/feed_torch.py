"""A training feed by PyTorch's DataLoader, on the files of a `gpuio workload`, into GPU memory.

    python3 feed_torch.py RECORD COMPUTE

RECORD is the JSON record of a run of `gpuio workload` on these files (kept, one sample a file): directory, prefix,
batch, readers, prefetch, epochs and the time of a step are taken from it. COMPUTE is `sleep` or `kernel`. Worker
processes read a whole file each into a tensor and hand batches over in shared memory; the main process copies them to
the GPU from page-locked memory and computes. Files are read through the page cache, which the caller empties. Prints
one line of JSON: utilisation by the same formula as gpuio's, samples per second, bytes, and processor time, that of the
worker processes included, without start and imports.

Needs PyTorch; with COMPUTE=kernel or a GPU, with CUDA.
"""
import json
import os
import resource
import sys
import time

import torch


class Files(torch.utils.data.Dataset):
    """One file, one sample."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, at):
        path = self.paths[at]
        return torch.from_file(path, size=os.stat(path).st_size, dtype=torch.uint8).clone()


def step_of(compute, seconds):
    """A function that computes for so long: asleep, or with matrices on the GPU."""
    if compute == "sleep":
        return lambda: time.sleep(seconds)
    one = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)

    def work(count):
        for _ in range(count):
            torch.matmul(one, one)
        torch.cuda.synchronize()

    work(10)
    begin = time.perf_counter()
    work(50)
    count = max(1, round(seconds / ((time.perf_counter() - begin) / 50)))
    return lambda: work(count)


def cpu():
    """Seconds of all threads, and of worker processes that have ended."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def main():
    record, compute = sys.argv[1:3]
    job = json.load(open(record))["plan"]["jobs"][0]
    feed = job["feed"]
    if feed["samples_per_file"] != 1:
        sys.exit("feed_torch.py reads workloads with one sample a file")
    paths = [target["path"] for target in job["targets"]]
    seconds = feed["compute_ns"] / 1e9
    loader = torch.utils.data.DataLoader(
        Files(paths), batch_size=feed["batch_samples"], shuffle=True, num_workers=feed["readers"],
        prefetch_factor=feed["prefetch"], collate_fn=list, pin_memory=torch.cuda.is_available(),
        persistent_workers=True, generator=torch.Generator().manual_seed(job["seed"]))
    step = step_of(compute, seconds)
    shares, samples, read = [], 0, 0
    used = cpu()
    begin = time.perf_counter()
    for _ in range(feed["epochs"]):
        ends = []
        for batch in loader:
            if torch.cuda.is_available():
                batch = [sample.cuda(non_blocking=True) for sample in batch]
                torch.cuda.synchronize()
            samples += len(batch)
            read += sum(sample.numel() for sample in batch)
            step()
            ends.append(time.perf_counter())
        if len(ends) >= 3:
            shares.append(seconds * (len(ends) - 2) / (ends[-2] - ends[0]) * 100)
    span = time.perf_counter() - begin
    # Worker processes are counted once they have ended.
    del loader
    used = cpu() - used
    known = sum(shares) / len(shares) if len(shares) == feed["epochs"] else None
    print(json.dumps({"loader": "torch " + torch.__version__, "compute": compute,
                      "cuda": torch.cuda.is_available(), "utilisation_percent": known,
                      "samples_per_s": samples / span, "bytes_per_s": read / span,
                      "samples": samples, "bytes": read, "cpu_s": used}))


if __name__ == "__main__":
    main()
