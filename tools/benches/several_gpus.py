#!/usr/bin/env python3
"""Several GPUs of one machine: what all together reach against one, and one read for all of them.

  tools/benches/several_gpus.py GPUIO DIRECTORY [--rounds 3] [--milliseconds 600] [--threads 12]
                          [--gib 4] [--only REGEX] [--gpu all] [--seconds 300]

GPUIO is the release binary; DIRECTORY, on the file system to use, gets a file of --gib GiB, which stays
and is read into the page cache first. Each round runs every row once for each GPU alone (--threads
threads) and once for all (--threads for each GPU), in random order. Medians, and the median (least to
most) of the rounds' own ratios to the sum of the single GPUs. Then fan-out: each block is read once and
placed in all GPUs, against one job for each GPU that reads everything, at the same number of threads.
After --seconds no row is begun any more: the tables have the rounds that there are.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# Path, block, order.
ROWS = [
    *((path, 4 * KIB, "randread") for path in ("gather", "mapped", "resident", "library", "library-batch")),
    *((path, 64 * KIB, "randread") for path in ("gather", "mapped", "resident", "library", "library-batch")),
    *((path, MIB, "randread") for path in ("gather", "mapped", "staged", "library", "library-stream")),
    ("gds", 4 * KIB, "randread"), ("gds", MIB, "randread"), ("host", MIB, "randread"),
]
FAN_OUT_BLOCKS = (64 * KIB, MIB, 4 * MIB)


def size(block):
    return f"{block // MIB} MiB" if block >= MIB else f"{block // KIB} KiB"


class Machine:
    def __init__(self, gpuio, directory, gib, gpu, milliseconds, threads):
        self.gpuio = gpuio
        self.directory = directory
        self.gpu = gpu
        self.milliseconds = milliseconds
        self.threads = threads
        os.makedirs(directory, exist_ok=True)
        self.result = os.path.join(directory, "result.json")
        self.bench(["--directory", directory, "--file-prefix", "several", "--threads", "1", "--size",
                    str(gib * GIB), "--rw", "read", "--runtime", "100ms", "--keep"])
        self.file = os.path.join(directory, "several.0")
        for _ in range(2):
            with open(self.file, "rb", buffering=0) as file:
                while file.read(16 * MIB):
                    pass
        record = self.bench(["--filename", self.file, "--path", "staged", "--gpu", gpu, "--threads",
                             "16", "--runtime", "100ms", "--buffered"])
        self.indices = [gpu["index"] for gpu in record["plan"]["jobs"][0]["gpus"]]
        self.name = "software:" if record["plan"]["software_gpu"] else ""

    def bench(self, arguments):
        if os.path.exists(self.result):
            os.unlink(self.result)
        done = subprocess.run([self.gpuio, "bench", "-o", self.result, "--quiet", *arguments],
                              capture_output=True, text=True, timeout=90)
        if not os.path.exists(self.result):
            raise RuntimeError((done.stdout + done.stderr)[-400:].replace("\n", " "))
        with open(self.result) as file:
            return json.load(file)

    def run(self, path, block, order, gpu, threads):
        arguments = ["--filename", self.file, "--path", path, "--bs", str(block), "--rw", order,
                     "--threads", str(threads), "--runtime", f"{self.milliseconds}ms", "--buffered"]
        arguments += [] if path == "host" else ["--gpu", gpu]
        record = self.bench(arguments)
        read = record["jobs"][0]["read"]
        return read["bytes_per_s"], read["iops"], record["totals"][0]["cpu"]["us_per_mib"]

    def separate(self, block):
        """One job for each GPU, at the same time; each reads what it likes of the whole file."""
        jobs = [f"[global]\npath=staged\nfilename={self.file}\nbs={block}\nrw=randread\nbuffered=1\n"
                f"threads={self.threads}\nruntime={self.milliseconds}ms\n"]
        jobs += [f"[gpu{index}]\ngpu={self.name}{index}\n" for index in self.indices]
        with tempfile.NamedTemporaryFile("w", suffix=".ini", dir=self.directory) as file:
            file.write("".join(jobs))
            file.flush()
            record = self.bench([file.name])
        return sum(job["read"]["bytes_per_s"] for job in record["jobs"])

    def fan_out(self, block):
        record = self.bench(["--fan-out", "--gpu", self.gpu, "--filename", self.file, "--bs", str(block),
                             "--rw", "randread", "--threads", str(self.threads * len(self.indices)),
                             "--runtime", f"{self.milliseconds}ms", "--buffered"])
        job = record["jobs"][0]
        return job["read"]["bytes_per_s"], job["fan_out"]["placed_bytes_per_s"]


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gpuio", type=os.path.abspath)
    parser.add_argument("directory", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--milliseconds", type=int, default=600)
    parser.add_argument("--threads", type=int, default=12)
    parser.add_argument("--gib", type=int, default=4)
    parser.add_argument("--only", default=".")
    parser.add_argument("--gpu", default="all")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    args = parser.parse_args()
    until = time.monotonic() + args.seconds
    machine = Machine(args.gpuio, args.directory, args.gib, args.gpu, args.milliseconds, args.threads)
    each = [f"{machine.name}{index}" for index in machine.indices]
    rows = [row for row in ROWS if re.search(args.only, f"{row[0]} {size(row[1])}")]
    found, refused = {row: [] for row in rows}, {}
    for _ in range(args.rounds):
        for row in random.sample(rows, len(rows)):
            if row in refused or time.monotonic() > until - args.seconds / 5:
                continue  # A fifth of the time is for fan-out.
            try:
                if row[0] == "host":
                    one = machine.run(*row, "", args.threads)
                    alone = {gpu: one for gpu in each}
                else:
                    alone = {gpu: machine.run(*row, gpu, args.threads) for gpu in each}
                together = machine.run(*row, args.gpu, args.threads * len(each))
            except (RuntimeError, LookupError, TypeError, subprocess.TimeoutExpired) as error:
                refused[row] = str(error)
                continue
            found[row].append(([alone[gpu] for gpu in each], together))
    print(f"# {len(each)} GPUs, {args.threads} threads for each, {args.rounds} rounds of {args.milliseconds} ms")
    print("| load | " + " | ".join(f"GPU {gpu}" for gpu in each) + " | all | all / sum of each | CPU µs/MiB |")
    print("| --- |" + " --- |" * (len(each) + 3))
    for row, rounds in found.items():
        if not rounds:
            continue
        is_small = row[1] < 64 * KIB
        column, scale, unit = (1, 1e6, "M/s") if is_small else (0, GIB, "GiB/s")
        cells = [f"{statistics.median(one[0][i][column] for one in rounds) / scale:.2f}" for i in range(len(each))]
        total = [one[1][column] / scale for one in rounds]
        ratio = [one[1][0] / sum(gpu[0] for gpu in one[0]) for one in rounds]
        cpu = statistics.median(one[1][2] for one in rounds)
        print(f"| {row[0]}, {size(row[1])} | " + " | ".join(cells) +
              f" | {spread(total)} {unit} | {spread(ratio)} | {cpu:.0f} |")
    for row, why in refused.items():
        print(f"- {row[0]}, {size(row[1])}: did not run: {why[-250:]}")
    if not re.search(args.only, "fan-out"):
        return
    print("\n| fan-out, block | read, GiB/s | placed in all GPUs, GiB/s | one job for each GPU | placed / that |")
    print("| --- | --- | --- | --- | --- |")
    for block in FAN_OUT_BLOCKS:
        read, placed, separate = [], [], []
        try:
            for _ in range(args.rounds):
                if time.monotonic() > until:
                    break
                one = machine.fan_out(block)
                read.append(one[0] / GIB)
                placed.append(one[1] / GIB)
                separate.append(machine.separate(block) / GIB)
        except (RuntimeError, LookupError, TypeError, subprocess.TimeoutExpired) as error:
            print(f"- fan-out, {size(block)}: did not run: {str(error)[-250:]}")
            continue
        ratio = [one / other for one, other in zip(placed, separate)]
        if not ratio:
            continue
        print(f"| {size(block)} | {spread(read, 1)} | {spread(placed, 1)} | {spread(separate, 1)} | {spread(ratio)} |")


if __name__ == "__main__":
    main()
