#!/usr/bin/env python3
"""Two builds of gpuio on the same files: is any path to GPU memory slower?

  tools/benches/paths_ab.py BEFORE AFTER DIRECTORY [--rounds 4] [--milliseconds 400] [--only REGEX]

BEFORE and AFTER are release binaries; DIRECTORY, on the disk to use, gets 6 GiB of warm files, which
stay. Each round runs every row once with each binary, in random order; rows that only AFTER knows run
with it alone. Medians, and the median (least to most) of the rounds' own ratios AFTER/BEFORE.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess

KIB, MIB = 1 << 10, 1 << 20
# Path, threads, block, order, more flags.
ROWS = [
    *((path, threads, 4 * KIB, "randread", depth) for threads in (1, 16)
      for path, depth in [("resident", 1), ("library", 0), ("gather", 0), ("gds", 0), ("staged", 1)]),
    *(("resident", threads, 4 * KIB, "randread", 8) for threads in (1, 16)),
    *((path, 16, 64 * KIB, "randread", depth)
      for path, depth in [("gather", 0), ("staged", 0), ("resident", 1), ("library", 0), ("gds", 0),
                          ("gds-stream", 0), ("gds-batch", 0), ("gds-batch-stream", 0),
                          ("library-batch", 0), ("managed", 0), ("mapped", 0)]),
    *((path, threads, MIB, "read", 0)
      for path, threads in [("gather", 12), ("gather", 1), ("staged", 12), ("staged", 1),
                            ("library", 12), ("library", 1), ("gds", 16), ("gds", 1),
                            ("gds-stream", 16), ("library-stream", 16), ("gds-batch", 16),
                            ("library-batch", 16), ("mapped", 1)]),
    ("gather", 16, 4 * KIB, "write", 0), ("staged", 16, MIB, "write", 0),
    ("library", 16, MIB, "write", 0),
    ("host", 16, 4 * KIB, "randread", 0), ("host", 1, 4 * KIB, "randread", 0),
]


def name(row):
    path, threads, block, order, depth = row
    size = f"{block >> 20} MiB" if block >= MIB else f"{block >> 10} KiB"
    return f"{path}, {threads} × {size} {order}{f', depth {depth}' if depth else ''}"


class Files:
    def __init__(self, directory):
        self.directory = directory
        self.warm = os.path.join(directory, "warm.0")
        self.result = os.path.join(directory, "result.json")

    def bench(self, binary, flags):
        if os.path.exists(self.result):
            os.unlink(self.result)
        done = subprocess.run([binary, "bench", "-o", self.result, "--quiet", *flags],
                              capture_output=True, text=True, timeout=60)
        if not os.path.exists(self.result):
            raise RuntimeError((done.stdout + done.stderr)[-300:])
        with open(self.result) as file:
            return json.load(file)

    def make(self, binary):
        os.makedirs(self.directory, exist_ok=True)
        for prefix, threads, size in [("warm", 1, "4G"), ("own", 16, "128M")]:
            self.bench(binary, ["--directory", self.directory, "--file-prefix", prefix, "--threads",
                                str(threads), "--size", size, "--rw", "read", "--runtime", "100ms",
                                "--keep"])
        for _ in range(2):
            with open(self.warm, "rb", buffering=0) as file:
                while file.read(16 * MIB):
                    pass

    def run(self, binary, row, milliseconds):
        path, threads, block, order, depth = row
        flags = ["--path", path, "--threads", str(threads), "--bs", str(block), "--rw", order,
                 "--runtime", f"{milliseconds}ms", "--buffered"]
        flags += ["--depth", str(depth)] if depth else []
        flags += [] if path == "host" else ["--gpu", "0"]
        if order == "write":
            flags += ["--directory", self.directory, "--file-prefix", "own", "--size", "128M", "--keep"]
        else:
            flags += ["--filename", self.warm]
        record = self.bench(binary, flags)
        side = record["jobs"][0]["write" if order == "write" else "read"]
        return (side["bytes_per_s"] / 2**30, side["iops"] / 1e6,
                side["latency"]["total"]["p50_ns"] / 1e3, side["latency"]["total"]["p99_ns"] / 1e3,
                record["totals"][0]["cpu"]["us_per_mib"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", type=os.path.abspath)
    parser.add_argument("after", type=os.path.abspath)
    parser.add_argument("directory", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--milliseconds", type=int, default=400)
    parser.add_argument("--only", default=".")
    args = parser.parse_args()
    files = Files(args.directory)
    files.make(args.after)
    rows = [row for row in ROWS if re.search(args.only, name(row))]
    results = {row: {"before": {}, "after": {}} for row in rows}
    refused = {}
    for turn in range(args.rounds):
        for row in random.sample(rows, len(rows)):
            sides = [("before", args.before), ("after", args.after)]
            for side, binary in random.sample(sides, 2):
                if (row, side) in refused:
                    continue
                try:
                    results[row][side][turn] = files.run(binary, row, args.milliseconds)
                except (RuntimeError, LookupError, TypeError, subprocess.TimeoutExpired) as error:
                    refused[row, side] = str(error).replace("\n", " ")
    print("| load | side | GiB/s (min–max) | M/s | p50 µs | p99 µs | CPU µs/MiB | after/before |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        for side, found in results[row].items():
            if not found:
                continue
            rate, iops, p50, p99, cpu = map(statistics.median, zip(*found.values()))
            low, high = min(one[0] for one in found.values()), max(one[0] for one in found.values())
            other = results[row]["before"] if side == "after" else {}
            pairs = [one[0] / other[turn][0] for turn, one in found.items() if turn in other]
            ratio = (f"{statistics.median(pairs):.3f} ({min(pairs):.2f}–{max(pairs):.2f})"
                     if pairs else "")
            print(f"| {name(row)} | {side} | {rate:.2f} ({low:.2f}–{high:.2f}) | {iops:.3f} | "
                  f"{p50:.1f} | {p99:.0f} | {cpu:.0f} | {ratio} |")
    for (row, side), why in refused.items():
        print(f"- {name(row)}, {side}: did not run: {why[-200:]}")


if __name__ == "__main__":
    main()
