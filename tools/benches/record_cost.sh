#!/usr/bin/env bash
# What recording costs a cuFile program, and how near its replay comes to its own rate.
#
#   tools/benches/record_cost.sh GPUIO DIRECTORY [ROUNDS]
#
# GPUIO is the release binary with libcufile.so beside it; DIRECTORY gets a file of SIZE bytes (4 GiB), which stays, and
# the replays' files, which go. Needs a C++ compiler and Python 3.9. Each round runs the same client (tools/benches/dropin.cpp)
# without and with recording, in turns (A B, then B A), and replays one trace by path library, in both orders. Printed:
# the median of the rounds' ratios, their range, and calls that were lost; each run on standard error as it ends.
# Environment:
#
#   CXX, DROPIN    the compiler (g++), or the program if it is built already
#   SOFTWARE=1     the software GPU: whether everything runs, not how fast
#   ONLY           a regular expression: rows whose name has it
#   SECONDS_EACH   2
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
gpuio=$(realpath "$1")
mkdir -p "$2"
dir=$(realpath "$2")
rounds=${3:-5}
size=${SIZE:-$((4 << 30))}
seconds=${SECONDS_EACH:-2}
work=$(mktemp -d "$dir/record_cost.XXXXXX")
touch "$work/results"
# The table is of the runs that ended, also when the script is stopped early.
finish() {
  table || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' TERM INT

if [ -n "${DROPIN:-}" ]; then
  cp "$DROPIN" "$work/dropin"
else
  "${CXX:-g++}" -O2 -std=c++17 -I "$here/crates/dropin/include" -I "$here/examples/c" \
    "$here/tools/benches/dropin.cpp" -o "$work/dropin" -ldl -pthread
fi
file=$dir/dropin.$size
[ "$(stat -c %s "$file" 2>/dev/null)" = "$size" ] || "$work/dropin" make "$file" "$size"
gpu=0
if [ -n "${SOFTWARE:-}" ]; then
  export GPUIO_CUFILE_DRIVER="$(dirname "$gpuio")/libgpuio_softgpu.so"
  gpu=software
fi
echo '{}' >"$work/cufile.json"
export CUFILE_ENV_PATH_JSON=$work/cufile.json

# Row, side, flags of exec, then the client's words.
run() {
  local row=$1 side=$2 flags=$3 code=0
  shift 3
  # shellcheck disable=SC2086 # several words
  timeout 120 "$gpuio" exec --cufile gpuio $flags -- "$work/dropin" "$@" >"$work/out" 2>"$work/err" || code=$?
  if [ "$code" != 0 ]; then
    echo "round $round, $row, $side: exit $code: $(tail -n 1 "$work/err")" >&2
    echo '{}' >"$work/out"
  fi
  local lost
  lost=$(grep -o '[0-9]* calls are not in the trace' "$work/err" | grep -o '^[0-9]*' || echo 0)
  printf '%s\t%s\t%s\t%s\t%s\n' "$round" "$row" "$side" "$lost" "$(tail -n 1 "$work/out")" | tee -a "$work/results" >&2
}

load() {
  local row=$1 mode=$2
  shift 2
  [[ "$row" =~ ${ONLY:-.} ]] || return 0
  local words=("$mode" "$file" "$@" --seconds "$seconds")
  local traced="--record $work/trace.cost"
  rm -f "$work"/trace.cost*
  if [ $((round % 2)) = 0 ]; then
    run "$row" plain "" "${words[@]}"
    run "$row" recorded "$traced" "${words[@]}"
  else
    run "$row" recorded "$traced" "${words[@]}"
    run "$row" plain "" "${words[@]}"
  fi
  # A trace of the load alone: no warm-up, no check.
  rm -f "$work"/trace.own*
  run "$row" own "--record $work/trace.own" "$mode" "$file" "$@" --seconds "$seconds" --ramp 0 --check 0
  local order code
  for order in observed threads; do
    code=0
    timeout 300 "$gpuio" replay "$work/trace.own" --path library --gpu "$gpu" --directory "$work/data" --buffered \
      --pre-read --order "$order" --format json --quiet >"$work/out" 2>"$work/err" || code=$?
    if [ "$code" != 0 ]; then
      echo "round $round, $row, replay: exit $code: $(tail -n 1 "$work/err")" >&2
      echo '{}' >"$work/out"
    fi
    python3 - "$work/out" >"$work/line" <<'PY'
import json, sys
record = json.load(open(sys.argv[1]))
if not record:
    print("{}")
else:
    plan, job = record["plan"]["jobs"][0]["replay"], record["jobs"][0]
    moved = job["read"]["bytes"] + job["write"]["bytes"]
    own = (plan["read_bytes"] + plan["written_bytes"]) / plan["recorded_ns"]
    print(json.dumps({"own": own, "replay": moved / job["last_done_ns"], "calls": job["replay"]["calls"]}))
PY
    printf '%s\t%s\t%s\t0\t%s\n' "$round" "$row" "$order" "$(cat "$work/line")" | tee -a "$work/results" >&2
  done
}

table() {
  python3 - "$work/results" <<'PY'
import json, statistics, sys
rows = {}
for line in open(sys.argv[1]):
    number, row, side, lost, text = line.rstrip("\n").split("\t")
    rows.setdefault(row, {}).setdefault(side, {})[number] = (json.loads(text), int(lost or 0))


def words(ratios):
    if not ratios:
        return "-"
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})"


print("| load | recorded / plain | calls lost | replay / own, order observed | order threads |")
print("| --- | --- | --- | --- | --- |")
for row, sides in rows.items():
    recorded, plain = sides.get("recorded", {}), sides.get("plain", {})
    cost = [recorded[n][0]["iops"] / plain[n][0]["iops"]
            for n in recorded if recorded[n][0] and plain.get(n, ({},))[0]]
    lost = sum(one[1] for one in recorded.values()) + sum(one[1] for one in sides.get("own", {}).values())
    replays = [words([one[0]["replay"] / one[0]["own"] for one in sides.get(order, {}).values() if one[0]])
               for order in ("observed", "threads")]
    print(f"| {row} | {words(cost)} | {lost} | {replays[0]} | {replays[1]} |")
PY
}

for round in $(seq "$rounds"); do
  cat "$file" >/dev/null
  load "cuFileRead 4 KiB random, 16 threads" sync --threads 16 --block 4096 --random
  load "cuFileRead 4 KiB random, 1 thread" sync --threads 1 --block 4096 --random
  load "cuFileRead 1 MiB, 16 threads" sync --threads 16 --block 1048576
  load "cuFileRead 1 MiB, 1 thread" sync --threads 1 --block 1048576
  load "batch of 128 x 4 KiB, 16 threads" batch --threads 16 --block 4096 --random
  load "cuFileReadAsync 1 MiB, 4 streams" async --streams 4 --block 1048576
done
