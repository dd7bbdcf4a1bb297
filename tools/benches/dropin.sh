#!/usr/bin/env bash
# gpuio's libcufile.so.0 against NVIDIA's and against plain pread + copy, by the same program on the
# same file: interleaved rounds, medians, ratios of each round's pairs; a table for docs/lab-book/library.md.
#
#   tools/benches/dropin.sh GPUIO DIRECTORY [ROUNDS]
#
# GPUIO is the release binary with libcufile.so beside it; DIRECTORY, on the disk to measure, gets a
# file of SIZE bytes (4 GiB), which stays. Needs a C++ compiler and Python 3.9. Environment:
#
#   CXX, DROPIN    the compiler (g++), or the program if it is built already
#   NVIDIA_CUFILE  directory of NVIDIA's libcufile.so.0; without it its rows are left out
#   EARLIER        another build of our libcufile.so.0, to compare this one with
#   KVIKIO         a Python that has the kvikio wheel and NumPy; without it its rows are left out
#   UDEV=1         as root: write the disk's entry into /run/udev/data where there is none, which
#                  NVIDIA's library needs (5027 otherwise)
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
nvidia=${NVIDIA_CUFILE:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -n "${DROPIN:-}" ]; then
  cp "$DROPIN" "$work/dropin"
else
  "${CXX:-g++}" -O2 -std=c++17 -I "$here/crates/dropin/include" -I "$here/examples/c" \
    "$here/tools/benches/dropin.cpp" -o "$work/dropin" -ldl -pthread
fi
file=$dir/dropin.$size
[ "$(stat -c %s "$file" 2>/dev/null)" = "$size" ] || "$work/dropin" make "$file" "$size"
if [ -n "${SOFTWARE:-}" ]; then
  export GPUIO_CUFILE_DRIVER="$(dirname "$gpuio")/libgpuio_softgpu.so"
  mkdir "$work/cuda"
  ln -s "$GPUIO_CUFILE_DRIVER" "$work/cuda/libcuda.so.1"
  export LD_LIBRARY_PATH="$work/cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
device=$(stat -c %d "$file")
entry=/run/udev/data/b$((device >> 8 & 0xfff)):$((device & 0xff | device >> 12 & 0xfff00))
if [ -n "${UDEV:-}" ] && [ ! -e "$entry" ]; then
  mkdir -p /run/udev/data
  printf 'E:ID_FS_USAGE=filesystem\nE:ID_FS_TYPE=%s\n' "$(stat -f -c %T "$dir" | sed 's,ext2/ext3,ext4,')" \
    >"$entry"
fi
# Compatibility mode, the log in a directory of its own, and enough buffers: a batch waits for ever for one.
cat >"$work/cufile.json" <<JSON
{ "logging": { "dir": "$work", "level": "ERROR" },
  "properties": { "allow_compat_mode": true, "posix_pool_slab_size_kb": [4, 1024, 16384],
                  "posix_pool_slab_count": [8192, 256, 64] } }
JSON

# Row, side, then the command. A run that fails leaves its reason.
run() {
  local row=$1 side=$2
  shift 2
  [[ "$row" =~ ${ONLY:-.} ]] || return 0
  local code=0
  timeout 120 "$@" >"$work/out" 2>"$work/err" || code=$?
  if [ "$code" != 0 ]; then
    echo "round $round, $row, $side: exit $code: $(tail -n 1 "$work/err")" >&2
    echo '{}' >"$work/out"
  fi
  printf '%s\t%s\t%s\t%s\n' "$round" "$row" "$side" "$(tail -n 1 "$work/out")" >>"$work/results"
}
ours() { run "$1" gpuio env CUFILE_ENV_PATH_JSON="$work/cufile.json" "$gpuio" exec --cufile gpuio -- "${@:2}"; }
theirs() {
  [ -n "$nvidia" ] || return 0
  run "$1" NVIDIA env CUFILE_ENV_PATH_JSON="$work/cufile.json" LD_PRELOAD="$nvidia/libcufile.so.0" \
    LD_LIBRARY_PATH="$nvidia${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "${@:2}"
}
earlier() {
  [ -n "${EARLIER:-}" ] || return 0
  run "$1" earlier env CUFILE_ENV_PATH_JSON="$work/cufile.json" LD_PRELOAD="$EARLIER" "${@:2}"
}
both() { ours "$@" && earlier "$@" && theirs "$@"; }
kvikio() {
  [ -n "${KVIKIO:-}" ] || return 0
  local row=$1
  shift
  KVIKIO_COMPAT_MODE=OFF both "$row" "$KVIKIO" "$here/tools/benches/dropin_kvikio.py" "$file" "$@"
  # KvikIO does not load without a cuFile library, which its POSIX path then leaves alone.
  run "$row" "pread + copy" env KVIKIO_COMPAT_MODE=ON "$gpuio" exec --cufile gpuio -- \
    "$KVIKIO" "$here/tools/benches/dropin_kvikio.py" "$file" "$@"
}
load() {
  local row=$1 mode=$2
  shift 2
  both "$row" "$work/dropin" "$mode" "$file" "$@"
  case $mode in sync) run "$row" "pread + copy" "$work/dropin" copy "$file" "$@" ;; esac
}

for round in $(seq "$rounds"); do
  cat "$file" >/dev/null
  t=(--seconds "$seconds")
  kvikio "KvikIO, defaults" "${t[@]}"
  kvikio "KvikIO, 16 threads" --threads 16 "${t[@]}"
  load "cuFileRead 4 KiB random, 16 threads" sync --threads 16 --block 4096 --random "${t[@]}"
  load "cuFileRead 4 KiB random, 1 thread" sync --threads 1 --block 4096 --random "${t[@]}"
  load "cuFileRead 64 KiB random, 16 threads" sync --threads 16 --block 65536 --random "${t[@]}"
  load "cuFileRead 1 MiB, 16 threads" sync --threads 16 --block 1048576 "${t[@]}"
  load "cuFileRead 1 MiB, 1 thread" sync --threads 1 --block 1048576 "${t[@]}"
  load "batch of 128 × 4 KiB, 16 threads" batch --threads 16 --block 4096 --random "${t[@]}"
  load "cuFileReadAsync 1 MiB, 4 streams" async --streams 4 --block 1048576 "${t[@]}"
  # Reads before the clock would show a library that the file is warm.
  cold=(--threads 16 --block 1048576 --cold --direct --seconds 60 --ramp 0)
  load "cold file, O_DIRECT, 1 MiB, 16 threads" sync "${cold[@]}"
  run "cold file, O_DIRECT, 1 MiB, 16 threads" pread "$work/dropin" pread "$file" "${cold[@]}"
done

python3 "$here/tools/benches/dropin_table.py" "$work/results"
