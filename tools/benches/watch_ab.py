#!/usr/bin/env python3
"""What the sampler costs a run: `gpuio bench` with and without --no-watch, alternately.

Usage: watch_ab.py GPUIO DIRECTORY [PAIRS]

Each pair runs both variants, in an order that changes from pair to pair. Prints for each load the ratio
(with : without) of rates and of the workers' CPU time per I/O: geometric mean with an interval of
95 % over pairs, and the sampler's share of one CPU.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

LOADS = {
    "null": ["--engine", "null"],
    "io_uring": ["--engine", "io_uring", "--direct", "--threads", "2", "--depth", "32"],
}
COMMON = "bench --rw randread --bs 4k --path host --size 256m --runtime 1s --keep -q".split()


def run(gpuio, directory, load, watched, out):
    words = [gpuio, *COMMON, *LOADS[load], "--directory", directory, "-o", out]
    subprocess.run(words + ([] if watched else ["--no-watch"]), check=True, capture_output=True)
    with open(out) as file:
        record = json.load(file)
    os.unlink(out)
    job = record["jobs"][0]
    ios = job["read"]["ios"]
    seen = record["watched"]
    assert (seen is not None) == watched
    share = seen["cpu_ns"] / seen["groups"][0]["ends_ns"][-1] if seen else None
    cpu = (job["cpu"]["user_s"] + job["cpu"]["system_s"]) / ios
    return ios / job["last_done_ns"], cpu, share


def ratio(logs):
    # Student's t of 95 % is 2.1 or less from 20 pairs on.
    half = 2.1 * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.mean(logs)
    return " ".join(f"{math.exp(x):.3f}" for x in (mean, mean - half, mean + half))


def main():
    gpuio, directory = sys.argv[1:3]
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "record.json")
        for load in LOADS:
            rates, cpus, shares = [], [], []
            for pair in range(pairs):
                both = {}
                for watched in (True, False) if pair % 2 else (False, True):
                    both[watched] = run(gpuio, directory, load, watched, out)
                rates.append(math.log(both[True][0] / both[False][0]))
                cpus.append(math.log(both[True][1] / both[False][1]))
                shares.append(both[True][2])
            print(f"{load}: rate {ratio(rates)}, CPU per I/O {ratio(cpus)}, "
                  f"sampler {statistics.mean(shares):.2%} of a CPU, at most {max(shares):.2%}")


if __name__ == "__main__":
    main()
