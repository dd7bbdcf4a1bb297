#!/usr/bin/env python3
"""The table of BENCHMARKS.md, "File I/O that kernels start": rings of gpuio.h and path initiated against
the paths whose I/O the host starts, and NVIDIA's library.

  tools/benches/kernel_io.py GPUIO DIRECTORY [--rounds 3] [--seconds 1.5] [--only REGEX] [--lib DIRECTORY]
                             [--dropin PROGRAM --nvidia DIRECTORY] [--memory /dev/shm]

GPUIO is the release binary, --lib the directory of libgpuio.so (GPUIO's). DIRECTORY needs 8 GiB. nvcc builds
kernel_io.cu and examples/gpu/pointer_chase.cu. --dropin is built from dropin.cpp, --nvidia has NVIDIA's
libcufile.so.0. Rounds are interleaved: each measures every row once. Medians are printed.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))


class Runs:
    def __init__(self, given):
        self.given = given
        self.programs = os.path.join(given.directory, "programs")
        self.lib = given.lib or os.path.dirname(os.path.realpath(given.gpuio))
        self.own = dict(os.environ, LD_LIBRARY_PATH=self.lib)
        os.makedirs(self.programs, exist_ok=True)
        include = [f"-I{REPOSITORY}/{place}"
                   for place in ("crates/clib/include", "crates/gpu/kernels", "examples/gpu")]
        for source in ("tools/benches/kernel_io.cu", "examples/gpu/pointer_chase.cu"):
            name = os.path.splitext(os.path.basename(source))[0]
            subprocess.run(["nvcc", "-O3", "-std=c++17", "-arch=native", *include, f"{REPOSITORY}/{source}", "-o",
                            f"{self.programs}/{name}", f"-L{self.lib}", "-lgpuio"], check=True, cwd=self.programs)

    def output(self, command, env):
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
        if done.returncode not in (0, 1):
            raise RuntimeError((done.stderr or done.stdout)[-300:])
        return done

    def chase(self, chains):
        file = os.path.join(self.given.directory, "nodes")
        done = self.output([f"{self.programs}/pointer_chase", file, "65536", "128", str(chains), "20000"], self.own)
        p50, p99, rate = re.search(r"p50 ([\d.]+) us, p99 ([\d.]+) us; all together ([\d.]+) M",
                                   done.stdout).groups()
        if "each node was the right one" not in done.stdout:
            raise RuntimeError(done.stderr[-300:])
        return {"m": float(rate), "p50": float(p50), "p99": float(p99), "cpu": chains + 1}

    def kernel(self, rings, shape, length, operation="read", place=None, poll=0):
        file = os.path.join(place or self.given.directory, f"kernel{rings}")
        command = [f"{self.programs}/kernel_io", file, str(rings), str(poll), *map(str, shape), str(length), operation,
                   str(self.given.seconds)]
        made = json.loads(self.output(command, self.own).stdout)
        if not made["right"]:
            raise RuntimeError("wrong bytes")
        return {"m": made["m_per_s"], "gib": made["gib_per_s"], "p50": made["p50_us"], "p99": made["p99_us"],
                "cpu": made["processors"]}

    def bench(self, path, threads, length, flags=(), operation="randread", size="128M"):
        with tempfile.TemporaryDirectory(dir=self.given.directory) as scratch:
            result = os.path.join(scratch, "result.json")
            command = [self.given.gpuio, "bench", "--quiet", "-o", result, "--path", path, "--threads", str(threads),
                       "--bs", str(length), "--rw", operation, "--size", size, "--directory", self.given.directory,
                       "--file-prefix", f"bench{threads}-", "--keep", "--ramp", "500ms",
                       "--runtime", f"{int(self.given.seconds * 1000)}ms", *flags]
            if operation.startswith("rand") and "--chain" not in flags:
                command.append("--norandommap")
            done = subprocess.run(command, capture_output=True, text=True, timeout=180)
            if not os.path.exists(result):
                raise RuntimeError((done.stderr or done.stdout)[-300:])
            with open(result, encoding="utf-8") as file:
                job = json.load(file)["jobs"][0]
        side = job["write" if "write" in operation else "read"]
        if job["failed"]:
            raise RuntimeError(f"{job['failed']} I/Os failed")
        times = side["latency"]["total"]
        found = {"m": side["iops"] / 1e6, "gib": side["bytes_per_s"] / 2**30, "p50": (times["p50_ns"] or 0) / 1e3,
                 "p99": (times["p99_ns"] or 0) / 1e3, "cpu": job["cpu"]["cores_busy"]}
        if path == "initiated":
            leg = side["latency"]["file"]
            found["leg"] = [(leg[key] or 0) / 1e3 for key in ("p50_ns", "p99_ns")]
        if job.get("beside"):
            cost = job["beside"]
            found["compute_keeps"] = cost["gpus"][0]["ratio"]
            found["io_keeps"] = side["bytes_per_s"] / cost["alone"]["read"]["bytes_per_s"]
        return found

    def nvidia(self, threads, length):
        file = os.path.join(self.given.directory, "nvidia")
        plain = dict(os.environ, LD_LIBRARY_PATH=self.given.nvidia)
        if not os.path.exists(file):
            self.output([self.given.dropin, "make", file, str(4 << 30)], plain)
        done = self.output([self.given.dropin, "sync", file, "--threads", str(threads), "--block", str(length),
                            "--random", "--seconds", str(self.given.seconds), "--ramp", "0.3"], plain)
        made = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
        return {"m": made["iops"] / 1e6, "gib": made["gib_per_s"], "p50": made["p50_us"], "p99": made["p99_us"],
                "cpu": made["cpu_s"] / made["seconds"]}


def rows(runs, given):
    warm = ("--buffered", "--pre-read")
    pages = (*warm,)
    yield "chain, rings of gpuio.h, 1 (1)", lambda: runs.chase(1)
    yield "chain, rings, 8 (1 each)", lambda: runs.chase(8)
    yield "chain, bench initiated, 1 ring", lambda: runs.bench(
        "initiated", 1, 4096, (*pages, "--rings", "1", "--depth", "4", "--chain"), size="1G")
    yield "4K, rings, 1 ring (64)", lambda: runs.kernel(1, (8, 2, 4), 4096)
    yield "4K, rings, 11 rings (64 each)", lambda: runs.kernel(11, (8, 2, 4), 4096)
    yield "4K, rings, 22 rings of 11 threads (64 each)", lambda: runs.kernel(22, (4, 4, 4), 4096, poll=11)
    yield "4K, bench initiated, 1 thread, 1 ring (64)", lambda: runs.bench(
        "initiated", 1, 4096, (*pages, "--rings", "1", "--depth", "64"), size="1G")
    yield "4K, bench initiated, 2 threads, 5 rings (64 each)", lambda: runs.bench(
        "initiated", 2, 4096, (*pages, "--rings", "5", "--depth", "320"), size="1G")
    yield "4K, bench resident, 16 threads (1)", lambda: runs.bench("resident", 16, 4096, (*pages, "--depth", "1"))
    yield "4K, bench library, 16 threads (1)", lambda: runs.bench("library", 16, 4096, pages)
    yield "64K, rings, 8 rings (64 each)", lambda: runs.kernel(8, (4, 8, 2), 65536)
    yield "64K, rings, 11 rings (64 each)", lambda: runs.kernel(11, (4, 8, 2), 65536)
    yield "64K, bench initiated, 2 threads, 4 rings (8 each)", lambda: runs.bench(
        "initiated", 2, 65536, (*pages, "--rings", "4", "--depth", "32"), size="1G")
    yield "64K, bench resident, 16 threads (2)", lambda: runs.bench("resident", 16, 65536, (*pages, "--depth", "2"))
    yield "64K, bench library, 16 threads (1)", lambda: runs.bench("library", 16, 65536, pages)
    yield "1M, rings, 11 rings (16 each)", lambda: runs.kernel(11, (2, 8, 1), 1 << 20)
    yield "1M, bench initiated, 8 threads, 1 ring (4)", lambda: runs.bench(
        "initiated", 8, 1 << 20, (*pages, "--rings", "1", "--depth", "4"))
    yield "1M, bench library, 12 threads (1)", lambda: runs.bench("library", 12, 1 << 20, pages)
    yield "write 4K, memory fs, rings, 8 rings (64 each)", lambda: runs.kernel(
        8, (4, 4, 4), 4096, "write", given.memory)
    yield "write 4K, disk fs, rings, 8 rings (64 each)", lambda: runs.kernel(8, (4, 4, 4), 4096, "write")
    yield "write 4K, bench initiated, 8 threads, 1 ring (16)", lambda: runs.bench(
        "initiated", 8, 4096, (*pages, "--rings", "1", "--depth", "16"), "randwrite")
    yield "write 4K, bench resident, 16 threads (1)", lambda: runs.bench(
        "resident", 16, 4096, (*pages, "--depth", "1"), "randwrite")
    yield "cold 1M, O_DIRECT, initiated, 4 threads, 1 ring (8)", lambda: runs.bench(
        "initiated", 4, 1 << 20, ("--direct", "--invalidate", "--rings", "1", "--depth", "8"), "read", "512M")
    yield "cold 1M, O_DIRECT, staged, 4 threads (8)", lambda: runs.bench(
        "staged", 4, 1 << 20, ("--direct", "--invalidate", "--depth", "8"), "read", "512M")
    for work in ("compute", "memory"):
        yield f"4K beside {work}, initiated, 2 threads, 4 rings (32 each)", lambda work=work: runs.bench(
            "initiated", 2, 4096, (*pages, "--rings", "4", "--depth", "128", "--beside", work), size="1G")
        yield f"4K beside {work}, library, 8 threads (1)", lambda work=work: runs.bench(
            "library", 8, 4096, (*pages, "--beside", work), size="256M")
    if given.dropin and given.nvidia:
        for threads, length in ((16, 4096), (16, 65536), (12, 1 << 20)):
            yield f"{length >> 10}K, NVIDIA's library, {threads} threads (1)", lambda t=threads, n=length: runs.nvidia(t, n)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpuio")
    parser.add_argument("directory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--only", default=".")
    parser.add_argument("--lib")
    parser.add_argument("--dropin")
    parser.add_argument("--nvidia")
    parser.add_argument("--memory", default="/dev/shm")
    given = parser.parse_args()
    given.gpuio, given.directory = os.path.realpath(given.gpuio), os.path.realpath(given.directory)
    os.makedirs(given.directory, exist_ok=True)
    runs = Runs(given)
    found = {}
    for _ in range(given.rounds):
        for name, run in rows(runs, given):
            if not re.search(given.only, name):
                continue
            try:
                made = run()
            except (RuntimeError, subprocess.SubprocessError, json.JSONDecodeError, AttributeError) as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                continue
            print(json.dumps({"row": name, **made}), file=sys.stderr, flush=True)
            found.setdefault(name, []).append(made)
    print("| row (in flight) | M/s | GiB/s | p50, p99 us | file leg p50, p99 us | processors | I/O and compute keep |\n|"
          + " --- |" * 7)
    for name, made in found.items():
        def middle(key, form):
            values = [one[key] for one in made if one.get(key) is not None]
            return f"{statistics.median(values):{form}}" if values else ""

        leg = [statistics.median(one["leg"][at] for one in made) for at in (0, 1)] if "leg" in made[0] else []
        print(f"| {name} | {middle('m', '.3f')} | {middle('gib', '.2f')} | {middle('p50', '.1f')}, {middle('p99', '.1f')} | "
              f"{', '.join(f'{one:.1f}' for one in leg)} | {middle('cpu', '.1f')} | "
              f"{middle('io_keeps', '.3f')} {middle('compute_keeps', '.3f')} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
