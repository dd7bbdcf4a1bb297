#!/usr/bin/env bash
# The measurements of docs/lab-book/staged.md: gpuio's staged path against NVIDIA's libcufile
# on one warm file, staged against host under O_DIRECT, and the verify suite. Interleaved rounds,
# medians at the end.
#
#   tools/benches/h100.sh GPUIO DIRECTORY [ROUNDS]
#
# GPUIO is the release binary; DIRECTORY, on the disk to measure, needs 9 GiB. CUFILE_PEER may name
# a binary built from tools/benches/cufile_peer.cpp; without it the comparison is left out.
set -euo pipefail
gpuio=$(realpath "$1")
dir=$2
rounds=${3:-5}
mkdir -p "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
file=$dir/warm.0

"$gpuio" bench --directory "$dir" --file-prefix warm --threads 1 --size 4G --rw read \
  --runtime 100ms --keep --quiet --format csv >"$work/made.csv"
cat "$file" >/dev/null
cat "$file" >/dev/null

# name, then the flags of gpuio bench
measure() {
  local name=$1
  shift
  "$gpuio" bench -o "$work/$name.$round.json" --quiet "$@" || echo "$name: exit $?"
}

for round in $(seq "$rounds"); do
  if [ -n "${CUFILE_PEER:-}" ]; then
    "$CUFILE_PEER" "$file" 16 1048576 2 0 0 >>"$work/cufile.1M"
    "$CUFILE_PEER" "$file" 16 65536 2 1 0 >>"$work/cufile.64K"
    "$CUFILE_PEER" "$file" 16 4096 2 1 0 >>"$work/cufile.4K"
  fi
  warm=(--filename "$file" --buffered --runtime 2)
  measure host16-1M "${warm[@]}" --path host --threads 16 --bs 1M
  measure staged16-1M "${warm[@]}" --path staged --threads 16 --bs 1M
  measure staged8-1M "${warm[@]}" --path staged --threads 8 --bs 1M
  measure staged1-1M "${warm[@]}" --path staged --threads 1 --bs 1M
  measure staged16-1M-2streams "${warm[@]}" --path staged --threads 16 --bs 1M --streams 2
  measure staged16-1M-depth1 "${warm[@]}" --path staged --threads 16 --bs 1M --depth 1
  measure staged16-64K "${warm[@]}" --path staged --threads 16 --bs 64K --rw randread
  measure staged16-4K "${warm[@]}" --path staged --threads 16 --bs 4K --rw randread
  # Where path auto changes over.
  for size in 64K 128K 256K 512K 1M; do
    for path in gather staged; do
      measure "auto-read-$size-$path" "${warm[@]}" --path $path --threads 16 --bs $size --rw randread
      measure "auto-write-$size-$path" --directory "$dir/w" --threads 16 --size 64M --buffered \
        --runtime 2 --path $path --bs $size --rw randwrite
    done
  done
  cold=(--filename "$file" --direct --threads 4 --bs 1M --depth 8 --runtime 4)
  measure host-direct "${cold[@]}" --path host
  measure staged-direct "${cold[@]}" --path staged
done

python3 - "$work" <<'PY'
import glob, json, re, statistics, sys
work = sys.argv[1]
rates = {}
def add(name, gib, iops, p50, p99, cpu):
    rates.setdefault(name, []).append((gib, iops, p50, p99, cpu))
for path in sorted(glob.glob(work + "/*.json")):
    record = json.load(open(path))
    for job in record["jobs"]:
        read = job["read"] if job["read"]["ios"] else job["write"]
        total = read["latency"]["total"]
        add(path.split("/")[-1].split(".")[0], read["bytes_per_s"] / 2**30, read["iops"],
            total["p50_ns"] / 1e3, total["p99_ns"] / 1e3, record["totals"][0]["cpu"]["us_per_mib"])
for path in glob.glob(work + "/cufile.*"):
    for line in open(path):
        numbers = [float(n) for n in re.findall(r"([0-9.]+) (?:GiB/s|IOPS|us/MiB|us)", line)]
        add("cufile16-" + path.rsplit(".", 1)[1], *numbers)
print(f"{'load':24} {'GiB/s':>8} {'min':>7} {'max':>7} {'IOPS':>9} {'p50 us':>8} {'p99 us':>8} us/MiB")
for name, rows in sorted(rates.items()):
    mid = [statistics.median(column) for column in zip(*rows)]
    low, high = min(r[0] for r in rows), max(r[0] for r in rows)
    print(f"{name:24} {mid[0]:8.3f} {low:7.3f} {high:7.3f} {mid[1]:9.0f} {mid[2]:8.1f} {mid[3]:8.1f} {mid[4]:6.1f}")
def ratio(a, b):
    if a in rates and b in rates:
        pairs = [x[0] / y[0] for x, y in zip(rates[a], rates[b])]
        print(f"{a} / {b}: median of pairs {statistics.median(pairs):.3f} ({min(pairs):.3f} to {max(pairs):.3f})")
ratio("staged16-1M", "cufile16-1M")
ratio("staged16-64K", "cufile16-64K")
ratio("staged16-4K", "cufile16-4K")
ratio("staged-direct", "host-direct")
for size in ("64K", "128K", "256K", "512K", "1M"):
    for rw in ("read", "write"):
        ratio(f"auto-{rw}-{size}-gather", f"auto-{rw}-{size}-staged")
PY

echo "verify suite:"
for path in staged cached; do
  for memory in device vmm pinned malloc mmap; do
    for rw in read randread write randwrite rw randrw; do
      rm -f "$work/v.json"
      "$gpuio" bench --directory "$dir/v" --threads 4 --size 16M --path $path --rw $rw --bs 64K \
        --memory $memory --verify --runtime 100ms --output "$work/v.json" --quiet \
        && outcome=ok || outcome="exit $?"
      python3 - "$work/v.json" "$path $memory $rw: $outcome" <<'PY'
import json, sys
verify = json.load(open(sys.argv[1]))["jobs"][0]["verify"]
print(f"{sys.argv[2]}: {verify['timed_blocks']} timed and {verify['pass_blocks']} pass blocks in "
      f"{verify['checked_in']}, {verify['bad_blocks']} bad")
PY
    done
  done
done
