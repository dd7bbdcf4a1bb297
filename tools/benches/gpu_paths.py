#!/usr/bin/env python3
"""The table of docs/lab-book/paths.md, "Every path to GPU memory", and its plots.

  tools/benches/gpu_paths.py GPUIO DIRECTORY [--rounds 5] [--seconds 1] [--only goals,growth,writes,direct,memory]
                       [--memory DIRECTORY] [--dropin PATH] [--nvidia DIRECTORY] [--cufile-peer PATH] [--kvikio PYTHON] [--plots DIRECTORY] [--gpu NAME]

GPUIO is the release binary; DIRECTORY, on the disk to measure, needs 13 GiB. --cufile-peer names the
program built from cufile_peer.cpp, --kvikio a Python that has KvikIO; without them their rows are
left out. Rounds are interleaved: each measures every row once. Medians are printed, and ratios as
the median of the rounds' own ratios. `memory` writes 2 GiB on a file system in memory (/dev/shm):
into new files, and again and again into files that are there. --dropin names the program built from
dropin.cpp: cuFileWrite of gpuio's library, after 8 s in which it registers the pages, and of NVIDIA's
(--nvidia DIRECTORY).
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KIB, MIB = 1 << 10, 1 << 20


def name(size):
    return f"{size >> 20}M" if size >= MIB else f"{size >> 10}K"


class Bench:
    def __init__(self, args):
        self.args = args
        self.warm = os.path.join(args.directory, "warm.0")
        self.scratch = os.path.join(args.directory, "result.json")
        self.rows = {}

    def prepare(self):
        self.gpuio(["--directory", self.args.directory, "--file-prefix", "warm", "--threads", "1",
                    "--size", "4G", "--rw", "read", "--runtime", "100ms", "--keep"])
        # What libcufile writes to is no longer gpuio's own, so each has files for itself.
        for prefix in ("own", "write"):
            self.gpuio(["--directory", self.args.directory, "--file-prefix", prefix, "--threads",
                        "16", "--size", "256M", "--rw", "read", "--runtime", "100ms", "--keep"])
        for _ in range(2):
            with open(self.warm, "rb", buffering=0) as file:
                while file.read(16 * MIB):
                    pass

    def gpuio(self, flags):
        if os.path.exists(self.scratch):
            os.unlink(self.scratch)
        done = subprocess.run([self.args.gpuio, "bench", "-o", self.scratch, "--quiet", *flags],
                              capture_output=True, text=True)
        if not os.path.exists(self.scratch):
            raise RuntimeError(done.stderr[-300:])
        with open(self.scratch) as file:
            return json.load(file)

    def ours(self, row, path, threads, block, rw="read", extra=()):
        """A job of gpuio on the warm file, or on a file per thread for writes."""
        seconds = f"{int(self.args.seconds * 1000)}ms"
        flags = ["--path", path, "--threads", str(threads), "--bs", str(block), "--rw", rw,
                 "--runtime", seconds]
        if "write" in rw:
            flags += ["--directory", self.args.directory, "--file-prefix", "own", "--size", "256M",
                      "--keep"]
        else:
            flags += ["--filename", self.warm]
        flags += [] if "--direct" in extra else ["--buffered"]
        flags += [] if path == "host" else ["--gpu", self.args.gpu]

        def measure():
            record = self.gpuio(flags + list(extra))
            # The whole process, as the peers count theirs: NVML's reader and the sampler too.
            cpu = record["totals"][0]["cpu"]["us_per_mib"]
            job = record["jobs"][0]
            side = job["write"] if "write" in rw else job["read"]
            total = side["latency"]["total"]
            legs = [(side["latency"].get(leg) or {}).get("p50_ns", 0) / 1e3
                    for leg in ("file", "gpu")]
            return [side["bytes_per_s"] / 2**30, side["iops"], total["p50_ns"] / 1e3,
                    total["p99_ns"] / 1e3, cpu, *legs]

        self.rows[row] = (measure, [])

    def in_memory(self, row, path, threads, block, new):
        """Writes of 2 GiB on a memory file system: all that a new file costs, or into pages of one
        that was written before."""
        flags = ["--path", path, "--threads", str(threads), "--bs", str(block), "--rw", "write",
                 "--size", str((2 << 30) // threads), "--directory", self.args.memory, "--buffered",
                 "--gpu", self.args.gpu, "--file-prefix", "new" if new else f"kept{threads}"]
        seconds = f"{int(self.args.seconds * 1000)}ms"
        flags += ["--loops", "1"] if new else ["--keep", "--runtime", seconds]

        def measure():
            record = self.gpuio(flags)
            job, cpu = record["jobs"][0], record["totals"][0]["cpu"]["us_per_mib"]
            side, mapped = job["write"], job.get("mapped") or {}
            # On a memory file system no source says what way the bytes of other paths went.
            other = path == "mapped" and not job["proof"]["as_requested"]
            if mapped.get("lost_bytes") or job["failed"] or other:
                raise RuntimeError(f"not as requested: {job['proof']['verdict']}, {mapped}")
            total, rate = side["latency"]["total"], side["bytes_per_s"]
            if new:
                outside = sum(mapped.get(key) or 0 for key in ("map_ns", "register_ns",
                                                               "unregister_ns"))
                rate = side["bytes"] / ((job["last_done_ns"] + outside) / 1e9)
                cpu = None if cpu is None else cpu + mapped.get("cpu_ns", 0) / 1e3 / (
                    side["bytes"] / MIB)
            return [rate / 2**30, side["iops"], total["p50_ns"] / 1e3, total["p99_ns"] / 1e3, cpu,
                    0, 0]

        self.rows[row] = (measure, [])

    def peer(self, row, command):
        def measure():
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            numbers = re.findall(r"([0-9.]+) (?:GiB/s|IOPS|us/MiB|us)", done.stdout)
            if len(numbers) != 5:
                raise RuntimeError((done.stdout + done.stderr)[-300:])
            return [float(number) for number in numbers] + [0, 0]

        self.rows[row] = (measure, [])

    def cufile(self, row, threads, block, random=0, direct=0, write=0):
        if self.args.cufile_peer:
            file = os.path.join(self.args.directory, "write") if write else self.warm
            self.peer(row, [self.args.cufile_peer, file, str(threads), str(block),
                            str(self.args.seconds), str(random), str(direct), str(write)])

    def write(self, row, library, threads, block, new):
        """cuFileWrite or pwrite into one file of 2 GiB, by dropin.cpp."""
        file, mode = os.path.join(self.args.memory, "write"), "write"
        command, environment = [self.args.gpuio, "exec", "--cufile", "gpuio", "--"], dict(os.environ)
        if library == "pwrite":
            command, mode = [], "pwrite"
        elif library == "NVIDIA's":
            command, environment["LD_LIBRARY_PATH"] = [], self.args.nvidia
        command += [self.args.dropin, mode, file, "--threads", str(threads), "--block", str(block),
                    "--seconds", str(self.args.seconds), "--ramp", "8", "--check", "4"]

        def measure():
            done = subprocess.run(command + (["--cold"] if new else []), capture_output=True,
                                  text=True, timeout=60, env=environment)
            if done.returncode != 0:
                raise RuntimeError((done.stdout + done.stderr)[-300:])
            found = json.loads(done.stdout.strip().splitlines()[-1])
            return [found[key] for key in ("gib_per_s", "iops", "p50_us", "p99_us",
                                           "cpu_us_per_mib")] + [0, 0]

        self.rows[row] = (measure, [])

    def kvikio(self, row, threads, task):
        if self.args.kvikio:
            self.peer(row, [self.args.kvikio, os.path.join(HERE, "kvikio_peer.py"), self.warm,
                            str(threads), str(task), str(self.args.seconds)])

    def run(self, title, rounds):
        for _ in range(rounds):
            for row, (measure, results) in self.rows.items():
                try:
                    results.append(measure())
                except (RuntimeError, LookupError, TypeError, ValueError,
                        subprocess.TimeoutExpired) as error:
                    # The round keeps its place, so that ratios are of one round.
                    results.append(None)
                    print(f"{row}: {error}", file=sys.stderr)
        print(f"\n### {title}\n")
        print("| load | GiB/s (min–max) | M/s | p50 µs | p99 µs | CPU µs/MiB | file, GPU leg p50 µs |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for row, (_, results) in self.rows.items():
            results = [result for result in results if result]
            if not results:
                print(f"| {row} | did not run | | | | | |")
                continue
            # A short run has no processor time.
            known = [[value for value in column if value is not None] for column in zip(*results)]
            gib, iops, p50, p99, cpu, file, gpu = [
                statistics.median(column) if column else None for column in known]
            cpu = "-" if cpu is None else f"{cpu:.0f}"
            low, high = min(r[0] for r in results), max(r[0] for r in results)
            print(f"| {row} | {gib:.2f} ({low:.2f}–{high:.2f}) | {iops / 1e6:.3f} | {p50:.1f} | "
                  f"{p99:.1f} | {cpu} | {file:.1f}, {gpu:.1f} |")
        sys.stdout.flush()
        rows, self.rows = self.rows, {}
        return {row: results for row, (_, results) in rows.items()}


def ratio(found, ours, theirs, column=0):
    rounds = zip(found.get(ours, []), found.get(theirs, []))
    pairs = [a[column] / b[column] for a, b in rounds
             if a and b and a[column] is not None and b[column]]
    if pairs:
        print(f"- {ours} / {theirs}{' (CPU)' if column == 4 else ''}: "
              f"{statistics.median(pairs):.2f} ({min(pairs):.2f}–{max(pairs):.2f})")


def goals(bench, rounds):
    for path, threads, block, rw, extra in [
        ("gather", 16, 4096, "randread", ()),
        ("resident", 1, 4096, "randread", ("--depth", "1")),
        ("staged", 1, 4096, "randread", ("--depth", "1")),
        ("gather", 1, 4096, "randread", ("--depth", "1")),
        ("resident", 16, 4096, "randread", ("--depth", "1")),
        ("mapped", 1, 4096, "randread", ()),
        ("mapped", 16, 4096, "randread", ()),
        ("mapped", 1, 16 * KIB, "randread", ()),
        ("mapped", 16, 16 * KIB, "randread", ()),
        ("mapped", 1, 64 * KIB, "randread", ()),
        ("mapped", 16, 64 * KIB, "randread", ()),
        ("mapped", 1, MIB, "randread", ()),
        ("mapped", 1, 16 * MIB, "randread", ()),
        ("gather", 16, 16 * KIB, "randread", ()),
        ("gather", 16, 64 * KIB, "randread", ()),
        ("gather", 12, MIB, "read", ()),
        ("gather", 8, MIB, "read", ()),
        ("staged", 12, MIB, "read", ()),
        ("staged", 8, MIB, "read", ()),
        ("host", 12, MIB, "read", ()),
    ]:
        depth = ", depth 1" if extra else ""
        bench.ours(f"{path}, {threads} threads, {name(block)} {rw}{depth}", path, threads, block,
                   rw, extra)
    for threads, block, random in [(16, 4096, 1), (1, 4096, 1), (16, 64 * KIB, 1), (16, MIB, 0),
                                   (8, MIB, 0)]:
        bench.cufile(f"libcufile, {threads} threads, {name(block)}", threads, block, random)
    for threads in (8, 16):
        bench.kvikio(f"KvikIO, {threads} threads, 4M tasks", threads, 4 * MIB)
    found = bench.run("Warm 4 GiB file", rounds)
    print()
    ratio(found, "gather, 16 threads, 4K randread", "libcufile, 16 threads, 4K")
    ratio(found, "resident, 16 threads, 4K randread, depth 1", "libcufile, 16 threads, 4K")
    ratio(found, "gather, 16 threads, 64K randread", "libcufile, 16 threads, 64K")
    ratio(found, "gather, 12 threads, 1M read", "libcufile, 16 threads, 1M")
    ratio(found, "gather, 12 threads, 1M read", "KvikIO, 16 threads, 4M tasks")
    ratio(found, "gather, 8 threads, 1M read", "KvikIO, 8 threads, 4M tasks")
    ratio(found, "resident, 1 threads, 4K randread, depth 1", "libcufile, 1 threads, 4K", 2)


def writes(bench, rounds):
    for path, block in [("gather", 4096), ("staged", 4096), ("gather", MIB), ("staged", MIB)]:
        bench.ours(f"{path}, 16 threads, {name(block)} write", path, 16, block, "write")
    for block in (4096, MIB):
        bench.cufile(f"libcufile, 16 threads, {name(block)} write", 16, block, write=1)
    bench.ours("host, 16 threads, 4K write", "host", 16, 4096, "write")
    bench.ours("host, 16 threads, 1M write", "host", 16, MIB, "write")
    found = bench.run("GPU memory to the page cache, a file per thread", rounds)
    print()
    for block in ("4K", "1M"):
        for path in ("gather", "staged"):
            ratio(found, f"{path}, 16 threads, {block} write",
                  f"libcufile, 16 threads, {block} write")


def memory(bench, rounds):
    ways = [("mapped", 1), ("mapped", 4), ("staged", 4), ("library", 4)]
    libraries = ["gpuio's", "pwrite"] + (["NVIDIA's"] if bench.args.nvidia else [])
    os.makedirs(bench.args.memory, exist_ok=True)
    if bench.args.dropin:
        subprocess.run([bench.args.dropin, "make", os.path.join(bench.args.memory, "write"),
                        str(2 << 30)], check=True)
    for pages in ("existing", "new"):
        for block in (MIB, 16 * MIB):
            for path, threads in ways:
                bench.in_memory(f"{path}, {threads} threads, {name(block)}, {pages} pages", path,
                                threads, block, pages == "new")
            for library in libraries if bench.args.dropin else []:
                for threads in (1, 4):
                    bench.write(f"{library}, {threads} threads, {name(block)}, {pages} pages",
                                library, threads, block, pages == "new")
    found = bench.run("GPU memory to tmpfs, writes of 2 GiB", rounds)
    print()
    for pages in ("existing", "new"):
        for block in ("1M", "16M"):
            for column in (0, 4):
                for ours, theirs in [("mapped", "staged"), ("gpuio's", "pwrite"),
                                     ("gpuio's", "NVIDIA's")]:
                    ratio(found, f"{ours}, 4 threads, {block}, {pages} pages",
                          f"{theirs}, 4 threads, {block}, {pages} pages", column)


def direct(bench, rounds):
    for block, rw in [(MIB, "read"), (64 * KIB, "randread")]:
        for path in ("host", "staged", "gather"):
            bench.ours(f"{path}, 4 threads, {name(block)}, O_DIRECT", path, 4, block, rw,
                       ("--direct", "--depth", "8"))
        bench.cufile(f"libcufile, 16 threads, {name(block)}, O_DIRECT", 16, block,
                     int(rw == "randread"), 1)
    found = bench.run("O_DIRECT: the disk", rounds)
    print()
    for block in ("1M", "64K"):
        for path in ("staged", "gather"):
            ratio(found, f"{path}, 4 threads, {block}, O_DIRECT",
                  f"host, 4 threads, {block}, O_DIRECT")
            ratio(found, f"{path}, 4 threads, {block}, O_DIRECT",
                  f"libcufile, 16 threads, {block}, O_DIRECT", 4)


def growth(bench, rounds):
    threads, blocks = [1, 2, 4, 8, 16], [4 * KIB << 2 * n for n in range(7)]
    per_launch = [1, 8, 64, 512]
    for block in (4 * KIB, 64 * KIB, MIB):
        for count in threads:
            for path in ("staged", "gather"):
                bench.ours(f"{path}, {count} threads, {name(block)}", path, count, block,
                           "randread")
            bench.cufile(f"libcufile, {count} threads, {name(block)}", count, block, 1)
    for block in blocks:
        for path in ("host", "staged", "gather"):
            bench.ours(f"{path}, 16 threads, {name(block)}", path, 16, block, "randread")
        bench.cufile(f"libcufile, 16 threads, {name(block)}", 16, block, 1)
    for count in per_launch:
        for block in (4 * KIB, 16 * KIB):
            bench.ours(f"gather, 16 threads, {name(block)}, {count} a launch", "gather", 16, block,
                       "randread", ("--gather-batch", str(count), "--depth", str(3 * count)))
    found = bench.run("How it grows", rounds)

    def series(label, keys):
        points = [(x, found.get(key)) for x, key in keys]
        ran = [(x, [r[0] for r in results if r]) for x, results in points if results]
        return label, [(x, statistics.median(rates)) for x, rates in ran if rates]

    for block in ("4K", "64K", "1M"):
        plot(bench.args.plots, f"threads-{block}", f"{block} random reads of a warm file: GiB/s by threads",
             [series(path, [(str(n), f"{path}, {n} threads, {block}") for n in threads])
              for path in ("staged", "gather", "libcufile")])
    plot(bench.args.plots, "blocks", "16 threads, random reads of a warm file: GiB/s by block size",
         [series(path, [(name(b), f"{path}, 16 threads, {name(b)}") for b in blocks])
          for path in ("host", "staged", "gather", "libcufile")])
    plot(bench.args.plots, "launch", "gather, 16 threads, random reads: GiB/s by blocks per launch",
         [series(block, [(str(n), f"gather, 16 threads, {block}, {n} a launch")
                         for n in per_launch]) for block in ("4K", "16K")])


def plot(directory, file, title, lines):
    """A small SVG: GiB/s from 0 up over equally spaced steps."""
    if not directory or not any(points for _, points in lines):
        return
    os.makedirs(directory, exist_ok=True)
    steps = max((points for _, points in lines), key=len)
    steps = [x for x, _ in steps]
    top = max(y for _, points in lines for _, y in points)
    unit = next(u for u in (0.5, 1, 2, 5, 10, 20, 50) if top / u <= 6)
    most = unit * (int(top / unit) + 1)
    left, right, upper, lower = 60, 590, 50, 310

    def x(step):
        return left + (right - left) * steps.index(step) / max(1, len(steps) - 1)

    def y(value):
        return lower - (lower - upper) * value / most

    # One colour for a path in all plots; other lines take what is left.
    colours = {"host": "#0072b2", "staged": "#d55e00", "gather": "#009e73", "libcufile": "#7b3294"}
    spare = iter(["#009e73", "#e69f00", "#56b4e9"])
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 360" role="img" '
           'font-family="sans-serif" font-size="13">',
           f"<title>{title}</title>", '<rect width="720" height="360" fill="#ffffff"/>',
           f'<text x="{left}" y="26" font-size="15">{title}</text>']
    value = 0
    while value <= most:
        out.append(f'<path d="M{left} {y(value):.1f}H{right}" stroke="#dddddd"/>'
                   f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
        value += unit
    for step in steps:
        out.append(f'<text x="{x(step):.1f}" y="{lower + 22}" text-anchor="middle">{step}</text>')
    across = title.rpartition(" by ")[2]
    out.append(f'<text x="{(left + right) / 2:.0f}" y="{lower + 42}" text-anchor="middle">{across}</text>')
    out.append(f'<text transform="translate(16 {(upper + lower) / 2:.0f}) rotate(-90)" '
               'text-anchor="middle">GiB/s</text>')
    ends = []
    for label, points in lines:
        colour = colours.get(label) or next(spare, "#333333")
        if not points:
            continue
        way = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in points)
        out.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for step, value in points:
            out.append(f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}">'
                       f"<title>{label}, {step}: {value:.2f} GiB/s</title></circle>")
        ends.append([y(points[-1][1]) + 4, label, colour])
    ends.sort()
    for above, below in zip(ends, ends[1:]):
        below[0] = max(below[0], above[0] + 16)
    for height, label, colour in ends:
        out.append(f'<text x="{right + 10}" y="{height:.1f}" fill="{colour}">{label}</text>')
    out.append("</svg>")
    with open(os.path.join(directory, file + ".svg"), "w") as svg:
        svg.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gpuio", type=os.path.abspath)
    parser.add_argument("directory", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--only", default="goals,writes,direct,growth")
    parser.add_argument("--dropin", type=os.path.abspath)
    parser.add_argument("--nvidia", type=os.path.abspath)
    parser.add_argument("--memory", default="/dev/shm/gpuio-paths")
    parser.add_argument("--cufile-peer", type=os.path.abspath)
    parser.add_argument("--kvikio")
    parser.add_argument("--plots")
    parser.add_argument("--gpu", default="0", help="as gpuio's flag; software only tries the script")
    args = parser.parse_args()
    bench = Bench(args)
    os.makedirs(args.directory, exist_ok=True)
    if args.only != "memory":
        bench.prepare()
    parts = {"goals": goals, "writes": writes, "direct": direct, "growth": growth,
             "memory": memory}
    for part in args.only.split(","):
        rounds = max(1, args.rounds // 2) if part == "growth" else args.rounds
        parts[part](bench, rounds)


if __name__ == "__main__":
    main()
