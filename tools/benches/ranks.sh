#!/usr/bin/env bash
# One process with all GPUs against one rank per GPU, on the same warm files and with as many threads in total:
# interleaved rounds, medians, ratios of pairs. Needs mpirun (Open MPI or MPICH) on PATH, and its library.
#
#   tools/benches/ranks.sh GPUIO DIRECTORY [ROUNDS [SECONDS]]
#
# GPUIO is the release binary; DIRECTORY needs SIZE for each thread. Environment:
#   GPUS          number of GPUs (those of nvidia-smi), or software:N for N software GPUs
#   THREADS       threads in total, a multiple of the GPUs (16)
#   SIZE          of each thread's file (256M)
#   MPIRUN_FLAGS  more flags for mpirun; MPICH on a machine that can't resolve its own name: -localhost 127.0.0.1
set -euo pipefail
gpuio=$(realpath "$1")
mkdir -p "$2"
dir=$(mktemp -d "$(realpath "$2")/ranks.XXXXXX")
rounds=${3:-5}
seconds=${4:-2}
threads=${THREADS:-16}
gpus=${GPUS:-$(nvidia-smi --list-gpus | wc -l)}
work=$(mktemp -d)
trap 'rm -rf "$work" "$dir"' EXIT
case $gpus in
  software:*)
    count=${gpus#software:}
    export GPUIO_SOFT_GPUS=$count
    one=software:$(seq -s, 0 $((count - 1)))
    each=software:{local_rank} ;;
  *)
    count=$gpus
    one=$(seq -s, 0 $((count - 1)))
    each=local ;;
esac
[ "$count" -ge 2 ] && [ $((threads % count)) = 0 ] || {
  echo "ranks.sh: $threads threads on $count GPUs; it needs two GPUs or more, and THREADS a multiple of them" >&2
  exit 2
}
mpirun=(mpirun -n "$count")
case $(mpirun --version) in
  *"Open MPI"*)
    mpirun+=(--bind-to none --oversubscribe)
    [ "$(id -u)" != 0 ] || mpirun+=(--allow-run-as-root) ;;
esac
read -ra more <<<"${MPIRUN_FLAGS:-}"
mpirun+=("${more[@]}")

files=(--directory "$dir" --size "${SIZE:-256M}")
"$gpuio" bench "${files[@]}" --threads "$threads" --rw read --runtime 100ms -q -o "$work/made.json"
# The kernel keeps pages that were read twice.
cat "$dir"/gpuio.* >/dev/null
cat "$dir"/gpuio.* >/dev/null

# name, then the flags of gpuio bench
process() {
  "$gpuio" bench "${files[@]}" --buffered --runtime "$seconds" --gpu "$one" --threads "$threads" "${@:2}" \
    -q -o "$work/$1.$round.process.json"
}
ranks() {
  "${mpirun[@]}" "$gpuio" bench "${files[@]}" --buffered --runtime "$seconds" --gpu "$each" \
    --threads $((threads / count)) "${@:2}" -q -o "$work/$1.$round.ranks.json"
}
for round in $(seq "$rounds"); do
  order=(process ranks)
  [ $((round % 2)) = 1 ] || order=(ranks process)
  for way in "${order[@]}"; do
    $way gather-4K --path gather --rw randread --bs 4k
    $way staged-1M --path staged --rw read --bs 1m
  done
done

"$gpuio" --version
mpirun --version | sed -n '/Open MPI\|Version:/{s/^ *Version: */MPICH /;p;q}'
python3 - "$work" "$count" "$threads" <<'PY'
import glob, json, statistics, sys
work, count, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def read(path):
    record = json.load(open(path))
    job = record["jobs"][0]
    if record["ended"] != "complete" or job["failed"]:
        sys.exit(f"{path}: ended {record['ended']}, {job['failed']} I/O errors")
    return record, job["read"]


rows = {}
for path in sorted(glob.glob(work + "/*.process.json")):
    name = path.split("/")[-1].split(".")[0]
    one, process = read(path)
    many, ranks = read(path.replace(".process.", ".ranks."))
    if many["ranks"]["ranks"] != count:
        sys.exit(f"{path}: {many['ranks']['ranks']} ranks ran, not {count}")
    skew = many["ranks"]["groups"][0]["start_skew_ns"] / 1e6
    rows.setdefault(name, []).append((process["bytes_per_s"], ranks["bytes_per_s"], skew))
print(f"{count} GPUs, {threads} threads in total; one process with all GPUs against a rank for each GPU")
print(f"{'':10} {'process GiB/s':>13} {'ranks GiB/s':>12} {'start skew ms':>14}  ranks/process: median of pairs (min to max)")
for name, pairs in rows.items():
    process, ranks, skew = (statistics.median(column) for column in zip(*pairs))
    ratios = [b / a for a, b, _ in pairs]
    print(f"{name:10} {process / 2**30:13.3f} {ranks / 2**30:12.3f} {skew:14.2f}  "
          f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
PY
