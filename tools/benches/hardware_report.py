#!/usr/bin/env python3
"""Checks what the programs of hardware.sh printed. The last line is a short summary; exit code 1
where something is not as it has to be.

  hardware_report.py ordering LOG           of ordering.cu
  hardware_report.py memops LOG             of sync_memops.cu
  hardware_report.py beside OURS [NVIDIAS]  of beside.cu, with both libraries
  hardware_report.py compute OURS [NVIDIAS] of compute.cu, with both libraries
  hardware_report.py several LOG...         of dropin.cpp, in processes at once
  hardware_report.py writes OURS PWRITES [NVIDIAS]   of dropin.cpp: lines for block sizes, in memory
  hardware_report.py tests LOG              of a Rust test program: its counts
  hardware_report.py locked MOST PID...     page-locked memory of processes that run, MOST MiB for each
"""
import json
import re
import sys
import time

# How much longer the slowest hundredth of a program's work may take during reads.
BESIDE_MOST = 1.2
# How much of its speed a computation keeps during reads; less where NVIDIA's library leaves it less.
KEEPS_LEAST = 0.98
KEEPS_SPREAD = 0.02
# Two runs of one library differ by so much.
SPREAD = 1.25
# A resident kernel that does not exit shows as work that waits for it, whatever the percentiles are.
LONGEST_US = 500_000


def ordering(path):
    """Every cell that docs/dropin.md promises is "after", and no block of a pageable copy is wrong."""
    cells = wrong = 0
    with open(path) as lines:
        for line in lines:
            pageable = re.match(r"pageable .*: (-?\d+) of \d+ wrong", line)
            if pageable:
                cells += 1
                if pageable.group(1) != "0":
                    wrong += 1
                    print(line.strip())
                continue
            if not re.match(r"(read|write) ", line):
                continue
            call, work, words = line[6:38].strip(), line[38:66].strip(), line[66:].split()
            synchronous = work in ("cudaMemset", "cudaMemcpy on the device")
            ordered = call == "async in legacy stream" and work != "non-blocking stream"
            for word in words:
                cells += 1
                known = word in ("after", "before", "mixed")
                if not known or (synchronous or ordered) and word != "after":
                    wrong += 1
                    print(line.strip())
                    break
    print(f"{cells} cells, {wrong} not in order")
    return cells > 100 and wrong == 0


def memops(path):
    """Registered memory of cudaMalloc has the attribute, and no kind of memory is read too early."""
    with open(path) as lines:
        text = lines.read()
    row = re.search(r"^cudaMalloc +fresh.*", text, re.M)
    row_text = row.group(0) if row else "no row of cudaMalloc"
    early = re.findall(r"^(\S+) +after cuFileWrite \(65536\) too early: (\d+)", text, re.M)
    print(row_text)
    print("read too early, of 400:", ", ".join(f"{kind} {count}" for kind, count in early))
    in_order = len(early) == 4 and all(count == "0" for _, count in early)
    return in_order and re.search(r"registered \(0\) 1\b", row_text) is not None


def one(path):
    with open(path) as lines:
        found = [line for line in lines if line.startswith("{")]
    return json.loads(found[-1]) if found else None


def beside(ours, theirs=None):
    def ratio(result):
        return result["beside"]["host"]["p99_us"] / result["alone"]["host"]["p99_us"]

    def summary(who, result):
        alone, near = result["alone"]["host"], result["beside"]["host"]
        return (f"{who} p50 {alone['p50_us']:.0f} to {near['p50_us']:.0f} us, p99 {alone['p99_us']:.0f} to "
                f"{near['p99_us']:.0f} ({ratio(result):.2f}x; GPU's clock "
                f"{result['alone']['gpu']['p99_us']:.0f} to {result['beside']['gpu']['p99_us']:.0f}), "
                f"reads {result['gib_per_s_alone']:.1f} to {result['gib_per_s_beside']:.1f} GiB/s")

    result = one(ours)
    peer = one(theirs) if theirs else None
    print(summary("alone to beside:", result) + (summary("; NVIDIA's:", peer) if peer else ""))
    near = result["beside"]["host"]
    # Two criteria for being no worse than NVIDIA's: a peer that is slow alone has a small ratio.
    good = ratio(result) <= BESIDE_MOST
    if peer:
        good = good or near["p99_us"] <= SPREAD * peer["beside"]["host"]["p99_us"]
    return good and near["most_us"] < LONGEST_US


def compute(ours, theirs=None):
    def summary(who, result):
        return (f"{who} keeps {result['compute_keeps']:.3f}, reads {result['gib_per_s_alone']:.2f} to "
                f"{result['gib_per_s_beside']:.2f} GiB/s")

    result = one(ours)
    peer = one(theirs) if theirs else None
    least, reads = KEEPS_LEAST, 0
    if peer:
        least = min(least, peer["compute_keeps"] - KEEPS_SPREAD)
        reads = peer["gib_per_s_beside"] / SPREAD
    print(summary("compute", result) + (summary("; NVIDIA's:", peer) if peer else ""))
    return result["compute_keeps"] >= least and result["gib_per_s_beside"] >= reads


def several(*paths):
    results = [one(path) for path in paths]
    good = [result for result in results if result and result["bad_blocks"] == 0]
    rates = [result["gib_per_s"] for result in good]
    checked = sum(result["checked_blocks"] for result in good)
    print(f"{len(good)} of {len(results)} processes, {sum(rates):.2f} GiB/s together "
          f"({min(rates, default=0):.2f} to {max(rates, default=0):.2f}), {checked} blocks checked")
    return len(good) == len(results) and all(rates) and checked > 0


def reason(text):
    """What the first panic said. A test that runs in a process of its own has the process's there."""
    said = re.search(r"panicked at [^\n]*:\n([^\n]+)", text)
    return f": {said.group(1).strip()}" if said else ""


def tests(path):
    with open(path, errors="replace") as lines:
        text = lines.read()
    ended = re.findall(r"test result: (\w+)\. (\d+) passed; (\d+) failed; (\d+) ignored", text)
    failed = re.findall(r"^test (\S+) \.\.\. FAILED", text, re.M)
    left_out = len(re.findall(r"SKIPPED|skipped on the system's driver", text))
    if not ended:
        # What it was at when it was ended.
        begun = re.findall(r"^test (\S+) \.\.\. $", text, re.M) or re.findall(r"^test (\S+)", text, re.M)
        print(f"did not come to its end, at {begun[-1] if begun else 'the start'}")
        return False
    # The last one: before it may stand those of processes that a failed test made.
    answer, passed, wrong, _ = ended[-1]
    print(f"{passed} passed, {wrong} failed, {left_out} notes of what was left out"
          + (f": {' '.join(sorted(set(failed)))}" if failed else "") + (reason(text) if failed else ""))
    return answer == "ok" and int(passed) > 0


def locked_kib(pid):
    """Resident KiB of anonymous mappings that a forked child does not get, which page-locked memory of
    the library is (madvise(2), MADV_DONTFORK; VmFlags "dc", proc_pid_smaps(5))."""
    total = resident = 0
    anonymous = False
    try:
        with open(f"/proc/{pid}/smaps") as file:
            lines = file.readlines()
    except OSError:
        lines = []  # It has ended.
    for line in lines:
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            fields = line.split()
            anonymous, resident = fields[4] == "0" and len(fields) == 5, 0
        elif line.startswith("Rss:"):
            resident = int(line.split()[1])
        elif line.startswith("VmFlags:") and anonymous and "dc" in line.split():
            total += resident
    return total


def locked(most_mib, *pids):
    """The most that each has within two seconds of all having any."""
    most = [0.0] * len(pids)
    end = time.monotonic() + 30
    waiting = True
    while time.monotonic() < end:
        most = [max(before, locked_kib(pid) / 1024) for before, pid in zip(most, pids)]
        if waiting and min(most) > 0:
            waiting, end = False, time.monotonic() + 2
        time.sleep(0.2)
    print(f"page-locked: {sum(most):.0f} MiB in {len(most)} processes, {min(most):.0f} to {max(most):.0f} each "
          f"(at most {most_mib})")
    return min(most) > 0 and max(most) <= float(most_mib)


def writes(ours, pwrites, nvidias=None):
    """Pages that exist are filled faster than pwrite writes them, new ones no slower than before."""
    runs = []
    for path in filter(None, (ours, pwrites, nvidias)):
        with open(path) as lines:
            runs.append([json.loads(line) for line in lines if line.startswith("{")])
    fine, words = all(len(lines) == 4 for lines in runs[:2]), []
    # NVIDIA's library may have ended none, or some.
    for at in zip(*(lines for lines in runs if len(lines) == 4)):
        fine = fine and not any(run["bad_blocks"] for run in at)
        if not at[0]["cold"]:
            fine = fine and at[0]["gib_per_s"] > 2 * at[1]["gib_per_s"]
        what = "new" if at[0]["cold"] else "existing"
        rates = " / ".join(f"{run['gib_per_s']:.1f} ({run['cpu_us_per_mib']:.0f})" for run in at)
        words.append(f"{what} {at[0]['threads']} x {at[0]['block'] >> 20} MiB {rates}")
    print("GiB/s (µs/MiB), ours / pwrite / NVIDIA's: " + "; ".join(words))
    return fine


def main():
    what = {"ordering": ordering, "writes": writes, "memops": memops, "beside": beside, "compute": compute,
            "several": several, "tests": tests, "locked": locked}
    if len(sys.argv) < 3 or sys.argv[1] not in what:
        sys.exit(__doc__)
    sys.exit(0 if what[sys.argv[1]](*sys.argv[2:]) else 1)


if __name__ == "__main__":
    main()
