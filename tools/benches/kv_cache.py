#!/usr/bin/env python3
"""gpuio's key-value cache workload against MLPerf Storage's script for it, in rounds that take turns.

  python3 kv_cache.py GPUIO SCRIPT DIRECTORY [--users 32] [--at-once 16] [--seconds 30] [--rounds 3] [--gpu 0]

GPUIO is the release binary, SCRIPT the `kv-cache.py` of the key-value cache benchmark in MLPerf Storage's repository
(needs NumPy and PyYAML). Both take Llama 3.1 8B (131,072 bytes a token), the same number of users, contexts read or
written at once, and time, without memory tiers. They differ: gpuio's contexts have 2048 tokens each, end in GPU memory
and are verified there; the script's have the lengths that it draws, end in host memory as NumPy arrays, and are not
verified. Its rates are the bytes that it counts over the time of its process, its start included: it divides by the time
asked for itself, even where its last requests end later. gpuio's are those of its record. The page cache is emptied
before each run where root runs this. CPU is that of the whole process: gpuio's also sets up and verifies.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time


def emptied():
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3")
    except OSError as error:
        print(f"the page cache is not emptied: {error}", file=sys.stderr)


def run(command, output):
    """Wall and processor seconds of a command that makes this file, and what it printed."""
    if os.path.exists(output):
        os.remove(output)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, done


def by_script(options, directory, output):
    wall, used, done = run([
        sys.executable, options.script, "--config", os.path.join(os.path.dirname(options.script), "config.yaml"),
        "--model", "llama3.1-8b", "--num-users", str(options.users), "--duration", str(options.seconds),
        "--gpu-mem-gb", "0", "--cpu-mem-gb", "0", "--max-concurrent-allocs", str(options.at_once),
        "--generation-mode", "none", "--seed", "42", "--cache-dir", directory, "--output", output], output)
    if not os.path.exists(output):
        sys.exit(f"{options.script} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    with open(output, encoding="utf-8") as file:
        found = json.load(file)["summary"]["cache_stats"]
    read, written = found["total_read_bytes"], found["total_write_bytes"]
    return {"read": read, "read_s": wall, "written": written, "written_s": wall, "cpu_s": used,
            "p95_ms": found["storage_read_p95_ms"], "said_gib_per_s": found["tier_storage_read_bandwidth_gbps"]}


def by_gpuio(options, path, verify, directory, output):
    command = [
        options.gpuio, "workload", "kv-cache", "--model", "llama3-8b", "--users", str(options.users), "--path", path,
        "--gpu", options.gpu, "--directory", directory, "--runtime", str(options.seconds), "--quiet", "--keep",
        "--output", output]
    wall, used, done = run(command + ([] if verify else ["--verify", "off"]), output)
    if done.returncode:
        sys.exit(f"gpuio ended with {done.returncode}:\n{done.stdout[-2000:]}")
    with open(output, encoding="utf-8") as file:
        decode, prefill = json.load(file)["jobs"]
    return {"read": decode["read"]["bytes"], "read_s": decode["feed"]["span_ns"] / 1e9,
            "written": prefill["write"]["bytes"], "written_s": prefill["feed"]["span_ns"] / 1e9,
            "cpu_s": used, "whole_s": wall}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpuio")
    parser.add_argument("script")
    parser.add_argument("directory")
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--paths", default="staged,library")
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--json")
    options = parser.parse_args()
    ours, theirs = (os.path.join(options.directory, name) for name in ("gpuio", "script"))
    os.makedirs(ours, exist_ok=True)
    output = os.path.join(options.directory, "kv_cache.json")
    sides = [(f"gpuio {path}{'' if verify else ', not verified'}", path, verify)
             for path in options.paths.split(",") for verify in (True, False)]
    found = {name: [] for name, *_ in [("MLPerf's script",), *sides]}
    # Makes the contexts outside of the rounds.
    by_gpuio(options, sides[0][1], False, ours, output)
    for number in range(options.rounds):
        os.makedirs(theirs, exist_ok=True)
        emptied()
        found["MLPerf's script"].append(by_script(options, theirs, output))
        shutil.rmtree(theirs)
        for name, path, verify in sides:
            emptied()
            found[name].append(by_gpuio(options, path, verify, ours, output))
        for name, runs in found.items():
            one = runs[-1]
            print(f"round {number + 1}: {name}: read {one['read'] / 1e9:.2f} GB in {one['read_s']:.1f} s, wrote "
                  f"{one['written'] / 1e9:.2f} GB, CPU {one['cpu_s']:.1f} s", flush=True)
    print(f"\n{options.users} users, {options.at_once} at once, {options.seconds} s, {options.rounds} rounds")
    print("| tool | read GB/s, median (min-max) | written GB/s | CPU s a GB moved |")
    print("| --- | --- | --- | --- |")
    for name, runs in found.items():
        def three(values):
            return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"
        print(f"| {name} | {three([one['read'] / one['read_s'] / 1e9 for one in runs])} "
              f"| {three([one['written'] / one['written_s'] / 1e9 for one in runs])} "
              f"| {three([one['cpu_s'] / (one['read'] + one['written']) * 1e9 for one in runs])} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
