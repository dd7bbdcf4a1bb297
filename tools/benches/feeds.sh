#!/usr/bin/env bash
# gpuio's training feeds against PyTorch's DataLoader on the same files and the same GPU, and against DLIO (the engine
# of MLPerf Storage) on files of its own of the same sizes: accelerator utilisation, samples per second and processor
# time, in rounds that take turns. Where they end: gpuio's in GPU memory, verified there; PyTorch's in GPU memory, not
# verified; DLIO's in host memory, cut to 2 MiB a sample, and its computing sleeps.
#
#   tools/benches/feeds.sh GPUIO DIRECTORY [ROUNDS [SCALE [PRESET]]]
#
# GPUIO is the release binary. DIRECTORY needs room for the data set: unet3d-h100 at scale 1 is 25 GB. Needs Python
# with PyTorch for its half (PYTHON, default python3); without it only gpuio's half runs and the table says so.
# DLIO=yes takes part where Python has dlio_benchmark. GPU=software tries the script without a GPU. The page cache is
# emptied before each run where root runs this; WARM=yes reads all files first instead. EPOCHS (2), COMPUTE ("kernel
# sleep") and PATHS ("staged library") choose among the runs.
set -euo pipefail
gpuio=$(realpath "$1")
dir=$(realpath -m "$2")
rounds=${3:-5}
scale=${4:-0.3}
preset=${5:-unet3d-h100}
gpu=${GPU:-0}
python=${PYTHON:-python3}
here=$(dirname "$(realpath "$0")")
out=${OUT:-$(mktemp -d)}
mkdir -p "$dir" "$out"

ready() {
  sync
  if [ "${WARM:-no}" = yes ]; then
    find "$dir" -type f -print0 | xargs -0 cat >/dev/null
  elif [ -w /proc/sys/vm/drop_caches ]; then
    echo 3 >/proc/sys/vm/drop_caches
  fi
}

ended() { # NAME: one line, so that what ran is known before the table
  echo "$(date +%T) $1 ended" >&2
}

feed() { # NAME, and flags
  local name=$1
  shift
  ready
  "$gpuio" workload "$preset" --gpu "$gpu" --directory "$dir" --scale "$scale" --epochs "${EPOCHS:-2}" --keep --quiet \
    --output "$out/$name.json" "$@"
  ended "$name"
}

# The table is of the runs that ended, also when the script is stopped early.
table() {
  "$python" - "$out" "$torch" <<'PY'
import glob, json, os, statistics, sys
rows = {}
for path in glob.glob(sys.argv[1] + "/*"):
    parts = os.path.basename(path).rsplit(".", 3)
    if len(parts) != 4:
        continue
    name, compute = parts[:2]
    try:
        found = json.load(open(path))
    except json.JSONDecodeError:
        print(f"{os.path.basename(path)} is not whole: its run did not end")
        continue
    if "jobs" in found:
        job = found["jobs"][0]
        feed = job["feed"]
        if not feed["complete"]:
            print(f"{os.path.basename(path)} was stopped before its end: left out")
            continue
        found = {"utilisation_percent": feed["utilisation_percent"], "samples_per_s": feed["samples_per_s"],
                 "bytes_per_s": job["read"]["bytes"] / (feed["span_ns"] / 1e9),
                 "bytes": job["read"]["bytes"], "cpu_s": job["cpu"]["user_s"] + job["cpu"]["system_s"]}
    rows.setdefault((compute, name), []).append(found)
print(f"{'compute':8} {'loader':24} {'AU %':>22} {'samples/s':>22} {'GB/s':>7} {'CPU s/GB':>8}   median (min to max)")
def three(values, digits):
    if None in values:
        return "unknown"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"
for (compute, name), found in sorted(rows.items()):
    of = lambda key: [one[key] for one in found]
    print(f"{compute:8} {name:24} {three(of('utilisation_percent'), 1):>22} {three(of('samples_per_s'), 2):>22} "
          f"{statistics.median(of('bytes_per_s')) / 1e9:7.2f} "
          f"{statistics.median(one['cpu_s'] / one['bytes'] * 1e9 for one in found):8.2f}")
if sys.argv[2] == "no":
    print("PyTorch was not found: its rows are missing")
PY
  if [ "${DLIO:-no}" = yes ] && [ $dlio = no ]; then
    echo "DLIO did not run:"
    tail -3 "$out/dlio-made.txt"
  fi
  echo "records: $out"
}

torch=yes
"$python" -c 'import torch' 2>/dev/null || torch=no
dlio=no
trap table EXIT
trap 'exit 143' TERM INT

# Makes the files, outside every round.
feed made --compute sleep --path staged
if [ "${DLIO:-no}" = yes ]; then
  if [ -e "$dir/dlio/made" ] ||
    "$python" "$here/feed_dlio.py" make "$out/made.json" "$dir/dlio" >"$out/dlio-made.txt" 2>&1; then
    dlio=yes
    touch "$dir/dlio/made"
  fi
fi
for round in $(seq "$rounds"); do
  if [ $dlio = yes ]; then
    ready
    "$python" "$here/feed_dlio.py" run "$out/made.json" "$dir/dlio" 2>"$out/dlio-errors.txt" | tail -1 \
      >"$out/dlio.sleep.$round.txt"
    ended "dlio.sleep.$round: $(cat "$out/dlio.sleep.$round.txt")"
  fi
  for compute in ${COMPUTE:-kernel sleep}; do
    for path in ${PATHS:-staged library}; do
      feed "gpuio-$path.$compute.$round" --path $path --compute $compute
      feed "gpuio-$path-unverified.$compute.$round" --path $path --compute $compute --verify off
    done
    if [ $torch = yes ]; then
      ready
      "$python" "$here/feed_torch.py" "$out/made.json" $compute \
        >"$out/torch.$compute.$round.txt"
      ended "torch.$compute.$round: $(cat "$out/torch.$compute.$round.txt")"
    fi
  done
done
