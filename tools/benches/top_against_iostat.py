#!/usr/bin/env python3
"""Compares `gpuio top --json` with `iostat -x` (sysstat) under a steady load of direct reads.

usage: top_against_iostat.py GPUIO DEVICE FILE [SECONDS]

FILE lies on DEVICE and is read with O_DIRECT by dd, over and over. Both tools watch the same
seconds, as nearly as two processes can. Exit code 1 where a figure differs by more than 2 %.
"""

import json
import os
import signal
import subprocess
import sys
import time

gpuio, device, file = sys.argv[1:4]
seconds = sys.argv[4] if len(sys.argv) > 4 else "10"
loop = f"while :; do dd if={file} of=/dev/null bs=256k iflag=direct status=none || exit; done"
load = subprocess.Popen(["sh", "-c", loop], start_new_session=True)
time.sleep(1)
try:
    theirs = subprocess.Popen(
        ["iostat", "-x", "-k", "-y", "-o", "JSON", device, seconds, "1"],
        stdout=subprocess.PIPE,
    )
    ours = subprocess.Popen(
        [gpuio, "top", device, "--json", "--interval", f"{seconds}s", "--count", "1"],
        stdout=subprocess.PIPE,
    )
    theirs = json.loads(theirs.communicate()[0])
    ours = json.loads(ours.communicate()[0])
finally:
    os.killpg(load.pid, signal.SIGKILL)
theirs = theirs["sysstat"]["hosts"][0]["statistics"][0]["disk"][0]
ours = next(d for d in ours["devices"] if d["device"] == device)["figures"]
rows = [
    ("r/s", theirs["r/s"], ours["reads_per_second"]),
    ("rkB/s", theirs["rkB/s"], ours["read_bytes_per_second"] / 1024),
    ("r_await", theirs["r_await"], ours["read_await_seconds"] * 1000),
    ("rareq-sz", theirs["rareq-sz"], ours["read_request_bytes"] / 1024),
    ("aqu-sz", theirs["aqu-sz"], ours["queue"]),
    ("%util", theirs["util"], ours["busy_percent"]),
]
bad = False
for name, their, our in rows:
    # iostat prints two decimals.
    off = abs(our - their) - 0.005
    wrong = off > 0.02 * abs(their)
    bad |= wrong
    print(f"{name:9} iostat {their:12.2f}  gpuio {our:12.2f}  {'DIFFERS' if wrong else ''}")
sys.exit(bad)
