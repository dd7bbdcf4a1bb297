#!/usr/bin/env python3
"""Makes the table of tools/benches/dropin.sh from its results: round, row, side and JSON, by tabs."""
import json
import statistics
import sys

OURS = "gpuio"
PEERS = ("earlier", "NVIDIA", "pread + copy", "pread")


def read(path):
    """Rows, then sides, then a result or none by round."""
    rows = {}
    with open(path) as lines:
        for line in lines:
            number, row, side, text = line.rstrip("\n").split("\t")
            rows.setdefault(row, {}).setdefault(side, {})[int(number)] = json.loads(text) or None
    return rows


def good(results):
    return [result for result in results.values() if result]


def middle(results, key):
    return statistics.median(result[key] for result in good(results))


def ratio(sides, peer, key):
    """Median of the ratios of runs in the same round."""
    pairs = [
        sides[OURS][number][key] / theirs[key]
        for number, theirs in sides.get(peer, {}).items()
        if theirs and theirs[key] and sides.get(OURS, {}).get(number)]
    if not pairs:
        return "–"
    return f"{statistics.median(pairs):.2f}× ({min(pairs):.2f}–{max(pairs):.2f})"


def rate(results):
    small = middle(results, "block") < 65536
    key, unit, scale = ("iops", "M/s", 1e6) if small else ("gib_per_s", "GiB/s", 1)
    values = [result[key] / scale for result in good(results)]
    return f"{statistics.median(values):.2f} {unit} ({min(values):.2f}–{max(values):.2f})"


def main():
    rows = read(sys.argv[1])
    results = [r for sides in rows.values() for side in sides.values() for r in good(side)]
    print("GPU: " + next((result["gpu"] for result in results if result["gpu"]), "none") + "\n")
    print("| load | side | rate (min–max) | p50 µs | p99 µs | CPU µs/MiB | wrong "
          "| rate, gpuio against it | CPU | p99 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    bad = 0
    for row, sides in rows.items():
        for side in (OURS, *PEERS):
            runs = sides.get(side)
            if runs is None:
                continue
            if not good(runs):
                print(f"| {row} | {side} | did not run | | | | | | | |")
                continue
            wrong = sum(result["bad_blocks"] for result in good(runs))
            checked = sum(result["checked_blocks"] for result in good(runs))
            bad += wrong
            times = [f"{middle(runs, key):.1f}" if middle(runs, key) else "–"
                     for key in ("p50_us", "p99_us")]
            against = ["", "", ""] if side == OURS else [
                ratio(sides, side, key) for key in ("gib_per_s", "cpu_us_per_mib", "p99_us")]
            missing = len(runs) - len(good(runs))
            failed = f", {missing} failed" if missing else ""
            print(f"| {row} | {side} | {rate(runs)}{failed} | {times[0]} | {times[1]} | "
                  f"{middle(runs, 'cpu_us_per_mib'):.0f} | {wrong} of {checked} | "
                  f"{against[0]} | {against[1]} | {against[2]} |")
    libraries = {result["library"] for result in results if result["library"]}
    print("\nLibraries that were loaded: " + ", ".join(sorted(libraries)))
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
