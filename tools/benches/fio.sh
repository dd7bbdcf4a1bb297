#!/usr/bin/env bash
# gpuio against fio on one warm file, 4 KiB random reads, one and two jobs, engine by engine:
# interleaved rounds, medians, ratios. Needs fio (Debian: apt-get install fio).
#
#   tools/benches/fio.sh GPUIO DIRECTORY [ROUNDS [SECONDS]]
#
# GPUIO is the release binary; DIRECTORY needs 1 GiB.
set -euo pipefail
gpuio=$(realpath "$1")
dir=$2
rounds=${3:-5}
seconds=${4:-3}
mkdir -p "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
file=$dir/fio.0

"$gpuio" bench --directory "$dir" --file-prefix fio --threads 1 --size 1G --rw read \
  --runtime 100ms --keep --quiet --format csv >"$work/made.csv"
cat "$file" >/dev/null
cat "$file" >/dev/null

for round in $(seq "$rounds"); do
  for engine in psync io_uring libaio; do
    depth=32
    [ $engine = psync ] && depth=1
    for jobs in 1 2; do
      name=$engine.$jobs.$round
      fio --name=r --filename="$file" --rw=randread --bs=4k --direct=0 --invalidate=0 --norandommap=1 --thread \
        --ioengine=$engine --iodepth=$depth --numjobs=$jobs --group_reporting --time_based \
        --runtime="$seconds" --output-format=json --output="$work/$name.fio"
      "$gpuio" bench --filename "$file" --rw randread --bs 4k --buffered --norandommap \
        --path host --engine $engine --depth $depth --threads $jobs --runtime "$seconds" \
        --output "$work/$name.json" --quiet
    done
  done
done

fio --version
python3 - "$work" <<'PY'
import glob, json, statistics, sys
pairs = {}
for path in sorted(glob.glob(sys.argv[1] + "/*.json")):
    ours = json.load(open(path))["jobs"][0]["read"]["iops"]
    # fio may write notes before it.
    text = open(path[:-4] + "fio").read()
    theirs = json.loads(text[text.index("{"):])["jobs"][0]["read"]["iops"]
    engine, jobs, _ = path.split("/")[-1].split(".", 2)
    pairs.setdefault((engine, jobs), []).append((ours, theirs))
print(f"{'engine':9} jobs {'gpuio/s':>9} {'fio/s':>9}  ratio: median of pairs (min to max)")
for (engine, jobs), rows in pairs.items():
    ours, theirs = (statistics.median(column) for column in zip(*rows))
    ratios = [a / b for a, b in rows]
    print(f"{engine:9} {jobs:4} {ours:9.0f} {theirs:9.0f}  {statistics.median(ratios):.2f} "
          f"({min(ratios):.2f} to {max(ratios):.2f})")
PY
rm -f "$file"
