#!/usr/bin/env bash
# libcufile.so.0 and libgpuio.so.0 on a real GPU: every test that needs one, a result line for each.
#
#   tools/benches/hardware.sh PACK DIRECTORY
#
# PACK is what hardware_pack.sh made; DIRECTORY, on the file system to use, gets 2 GiB of files and logs.
# A line is PASS, FAIL or SKIPPED, seconds, name, and what was seen or why not. Needs an NVIDIA driver and
# Python 3; nvcc for the tests in CUDA, and what rows name. Exit code: 0 where nothing failed, 1 where
# something did, 2 for wrong arguments, 3 where nothing could run. Environment:
#
#   ONLY           a regular expression: rows whose name has it
#   MINUTES        rows that are not begun by then are left out (10); a row that is running is ended
#   PYTHON         with PyTorch, cuda-bindings, fastsafetensors (python3)
#   FIO, ELBENCHO  the programs, where PACK has none
#   NVIDIA_CUFILE  directory of NVIDIA's libcufile.so.0, to compare with, where PACK has none
#   UDEV=1         as root: the disk's entry in /run/udev/data, which NVIDIA's library needs
#   BLOCKS         block sizes of the verification ("4k 16k 64k 256k 1m")
#   CUDA_ARCH      what nvcc builds for (native)
#   MODEL_SECONDS  of the row of files that other processes change (60); MINUTES bounds it too
set -uo pipefail
[ $# = 2 ] || { sed -n '2,20s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
pack=$(realpath "$1")
# Not into tmp, where the programs lie: a file of `twin` has its name.
mkdir -p "$2/logs" "$2/tmp" "$2/twins" || exit 2
dir=$(realpath "$2")
gpuio=$pack/bin/gpuio
python=${PYTHON:-python3}
nvidia=${NVIDIA_CUFILE:-}
[ -n "$nvidia" ] || [ ! -d "$pack/nvidia" ] || nvidia=$pack/nvidia
export TMPDIR=$dir/tmp
[ ! -d "$pack/lib/programs" ] ||
  export LD_LIBRARY_PATH="$pack/lib/programs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
until=$((SECONDS + ${MINUTES:-10} * 60))
passed=0 failed=0 skipped=0
mps=
why=
: >"$dir/results"

# The end: the daemon of MPS is ours, and so is the directory that test programs want.
made=
finish() {
  [ -z "$mps" ] || echo quit | CUDA_MPS_PIPE_DIRECTORY=$mps nvidia-cuda-mps-control >/dev/null 2>&1
  [ -z "$made" ] || rmdir -p --ignore-fail-on-non-empty "$made" 2>/dev/null
}
trap finish EXIT

line() {
  printf '%-8s%5ss  %-44s %s\n' "$1" "$2" "$3" "$(printf %s "$4" | cut -c1-300)" | tee -a "$dir/results"
}
skip() {
  [[ "$1" =~ ${ONLY:-.} ]] || return 0
  skipped=$((skipped + 1))
  line SKIPPED 0 "$1" "$2"
}
# Name, most seconds, then a function whose last line reports the result, and which gives the programs
# that it starts $limit. Its exit code 77 means that it can't be done here, and nothing was tried.
row() {
  local name=$1 begin=$SECONDS code=0 log
  limit=$2
  shift 2
  [[ "$name" =~ ${ONLY:-.} ]] || return 0
  if [ -n "$why" ]; then skip "$name" "$why"; return; fi
  [ "$limit" -le $((until - SECONDS)) ] || limit=$((until - SECONDS))
  if [ "$limit" -lt 5 ]; then skip "$name" "the ${MINUTES:-10} minutes are over"; return; fi
  log=$dir/logs/$(echo "$name" | tr -c 'A-Za-z0-9._\n-' _).log
  "$@" >"$log" 2>&1 || code=$?
  local result
  result=$(grep -avE '^ *$|library: ' "$log" | tail -n 1)
  case $code in
    0) passed=$((passed + 1)) && line PASS $((SECONDS - begin)) "$name" "$result" ;;
    77) skipped=$((skipped + 1)) && line SKIPPED $((SECONDS - begin)) "$name" "$result" ;;
    124 | 137) failed=$((failed + 1)) && line FAIL $((SECONDS - begin)) "$name" "did not end in $limit s: $result" ;;
    *) failed=$((failed + 1)) && line FAIL $((SECONDS - begin)) "$name" "exit $code: $result" ;;
  esac
}
verify_output() { "$python" "$here/hardware_report.py" "$@"; }
has() { "$python" -c "import $1" 2>/dev/null; }
ours() { timeout -k 5 "$limit" "$gpuio" exec --cufile gpuio -- "$@"; }
theirs() {
  LD_LIBRARY_PATH=$nvidia${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} CUFILE_ENV_PATH_JSON=$dir/cufile.json \
    timeout -k 5 "$limit" "$@"
}

# A Rust test program on the system's driver; variables before its name.
tests() {
  local code=0 out=$dir/logs/tests.out
  timeout -k 5 "$limit" env GPUIO_TEST_GPU=system "$@" --test-threads 1 --show-output >"$out" 2>&1 || code=$?
  cat "$out"
  verify_output tests "$out" && [ "$code" = 0 ]
}
built() {
  [ -z "$no_nvcc" ] || { echo "$no_nvcc"; return 77; }
  [ -x "$dir/tmp/$1" ] || { tail -n 3 "$dir/logs/nvcc-$1.log"; return 1; }
}
cuda_row() { # program, verify_output's name, arguments
  built "$1" || return
  local out=$dir/logs/$1.out code=0
  ours "$dir/tmp/$1" "${@:3}" >"$out" || code=$?
  [ "$code" = 0 ] || { tail -n 1 "$out"; return "$code"; }
  verify_output "$2" "$out"
}
compute() { # work, threads, block
  built compute || return
  local out=$dir/logs/compute-$1-$2-$3 peer=()
  ours "$dir/tmp/compute" "$1" "$file" "$2" "$3" 6 >"$out.ours" || return
  if [ -n "$nvidia" ] && theirs "$dir/tmp/compute" "$1" "$file" "$2" "$3" 6 >"$out.nvidia"; then
    peer=("$out.nvidia")
  fi
  verify_output compute "$out.ours" "${peer[@]}"
}
beside() { # work, threads, block
  built beside || return
  local out=$dir/logs/beside-$1-$2-$3 code=0 peer=()
  ours "$dir/tmp/beside" "$1" "$file" "$2" "$3" 4.5 >"$out.ours" || code=$?
  [ "$code" != 3 ] || return 77 # The GPU or the driver can't do it; the program's last line says what.
  [ "$code" = 0 ] || return "$code"
  if [ -n "$nvidia" ] && theirs "$dir/tmp/beside" "$1" "$file" "$2" "$3" 3 >"$out.nvidia"; then
    peer=("$out.nvidia")
  fi
  verify_output beside "$out.ours" "${peer[@]}"
}
in_mps() {
  [ -n "$mps" ] || { echo "$no_mps"; return 77; }
  CUDA_MPS_PIPE_DIRECTORY=$mps "$@"
}
# Programs at once: how many, then the arguments of dropin. The last run's numbers are in $pids.
several() {
  local n outs=() code=0
  pids=()
  for n in $(seq "$1"); do
    outs+=("$dir/logs/several-$n")
    timeout -k 5 "$limit" "$gpuio" exec --cufile gpuio -- "$pack/bin/dropin" "${@:2}" >"${outs[-1]}" 2>&1 &
    pids+=($!)
  done
  [ -z "${look:-}" ] || "$look"
  for n in "${pids[@]}"; do wait "$n" || code=$?; done
  [ "$code" = 0 ] || { grep -hv '^{' "${outs[@]}" | tail -n 1; return 1; }
  verify_output several "${outs[@]}"
}
# The children of timeout(1) are the programs.
look_at_locked() {
  local children
  sleep 0.5
  children=$(for n in "${pids[@]}"; do cat "/proc/$n/task/$n/children"; done)
  # shellcheck disable=SC2086 # a list of numbers
  verify_output locked 544 $children >"$dir/logs/locked" 2>&1 || echo failed >>"$dir/logs/locked"
}
eight() {
  local look=look_at_locked together code=0
  together=$(several "$@") || code=$?
  cat "$dir/logs/locked"
  ! grep -q failed "$dir/logs/locked" || code=1
  echo "$(head -n 1 "$dir/logs/locked"); $(tail -n 1 <<<"$together")"
  return "$code"
}
sanitized() { # tool, then the program; the library by its path, since exec would be looked at too
  local tool=$1
  shift
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer here"; return 77; }
  local out=$dir/logs/sanitizer.out code=0
  LD_LIBRARY_PATH=$pack/lib/gpuio${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} GPUIO_CUFILE=gpuio \
    timeout -k 5 "$limit" compute-sanitizer --tool "$tool" --error-exitcode 9 "$@" >"$out" 2>&1 || code=$?
  cat "$out"
  [ "$code" = 0 ] || { grep -a '=========' "$out" | grep -avE 'COMPUTE-SANITIZER|=========$' | head -n 1; }
  [ "$code" != 0 ] || grep -a 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out"
  return "$code"
}
mapped_file() { # offset, length
  local code=0
  LD_LIBRARY_PATH=$pack/lib/gpuio${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    timeout -k 5 "$limit" "$pack/bin/map_file" "$file" "$@" || code=$?
  [ "$code" != 3 ] || return 77 # The GPU or the file system can't do it; the program's last line says which.
  return "$code"
}
# Writes into pages of a file in memory: those that are there, after a ramp in which the library
# registers them, then new ones.
mapped_writes() {
  local memory=/dev/shm/gpuio-writes-$$ shape new code=0 out=$dir/logs/mapped_writes
  rm -f "$out".*
  "$pack/bin/dropin" make "$memory" $((1 << 30)) || { rm -f "$memory"; return 77; }
  for shape in "1 1048576" "1 16777216" "4 1048576" "4 1048576 --cold"; do
    # shellcheck disable=SC2086 # threads, block, and that pages are new
    set -- $shape
    new=(--threads "$1" --block "$2" --seconds 2 --check 4 ${3:-})
    ours "$pack/bin/dropin" write "$memory" "${new[@]}" --ramp 6 >>"$out.ours" || code=$?
    "$pack/bin/dropin" pwrite "$memory" "${new[@]}" >>"$out.pwrite" || code=$?
    [ -z "$nvidia" ] || theirs "$pack/bin/dropin" write "$memory" "${new[@]}" >>"$out.nvidia" ||
      echo "NVIDIA's library did not end"
  done
  rm -f "$memory"
  [ "$code" = 0 ] || return "$code"
  verify_output writes "$out.ours" "$out.pwrite" ${nvidia:+"$out.nvidia"}
}
kernels() { # program of CUDA whose kernels start I/O, arguments
  built "$1" || return
  local code=0
  LD_LIBRARY_PATH=$pack/lib/gpuio${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    timeout -k 5 "$limit" "$dir/tmp/$1" "${@:2}" || code=$?
  [ "$code" != 3 ] || return 77 # No rings here, or no O_DIRECT; the program's last line says which.
  return "$code"
}
kernels_checked() { # tool, then as kernels
  built "$2" || return
  sanitized "$1" "$dir/tmp/$2" "${@:3}"
}
lookup() {
  local code=0
  PYTHONPATH=$repo/python${PYTHONPATH:+:$PYTHONPATH} GPUIO_LIBGPUIO=$pack/lib/gpuio/libgpuio.so.0 \
    timeout -k 5 "$limit" "$python" "$repo/examples/gpu/embedding.py" "$dir/table" --rows 262144 || code=$?
  [ "$code" != 3 ] || return 77 # No PyTorch, CuPy or rings; the last line says which.
  return "$code"
}
module() { # what it needs, then the script
  has "$1" || { echo "no $1 in $python"; return 77; }
  ours "$python" "$here/clients/$2" "$dir"
}
verified() { # fio or elbencho
  local program
  case $1 in fio) program=${FIO:-$pack/bin/fio} ;; *) program=${ELBENCHO:-$pack/bin/elbencho} ;; esac
  [ -x "$program" ] || { echo "no $1 here: clients/verify_build.sh builds it"; return 77; }
  local out=$dir/logs/verify-$1.out code=0
  FIO='' ELBENCHO='' NVIDIA_CUFILE='' UDEV='' BLOCKS=${BLOCKS:-4k 16k 64k 256k 1m} timeout -k 5 "$limit" \
    env "${1^^}=$program" "$here/clients/verify.sh" "$gpuio" "$dir/verify" >"$out" 2>&1 || code=$?
  cat "$out"
  echo "$(grep -c ' verified$' "$out") combinations verified, $(grep -c FAILED "$out") not: $(grep -m 1 FAILED "$out")"
  return "$code"
}

# What there is.
if ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
  why="no NVIDIA driver"
elif ! "$python" -c '' 2>/dev/null; then
  why="no $python here"
fi
no_nvcc=
command -v nvcc >/dev/null || no_nvcc="no nvcc here"
if [ -z "$why" ]; then
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/^/# /'
  echo "# $(uname -r), $(nproc) cores, gpuio $(cat "$pack/commit" 2>/dev/null)"
  wanted=$(cat "$pack/tests/tmpdir")
  [ -d "$wanted" ] || { mkdir -p "$wanted" 2>/dev/null && made=$wanted; }
  if [ -z "$no_nvcc" ]; then
    for program in ordering sync_memops beside compute; do
      libraries="-lcuda -ldl"
      [ "$program" != compute ] || libraries="-ldl -lcublas"
      # shellcheck disable=SC2086 # two words
      nvcc -O2 -std=c++17 "-arch=${CUDA_ARCH:-native}" -I "$here/../../crates/dropin/include" \
        "$here/$program.cu" -o "$dir/tmp/$program" $libraries >"$dir/logs/nvcc-$program.log" 2>&1 &
    done
  fi
  if [ -z "$no_nvcc" ]; then
    for program in crates/clib/tests/rings/random crates/clib/tests/rings/twin examples/gpu/pointer_chase; do
      nvcc -O2 -std=c++17 "-arch=${CUDA_ARCH:-native}" -I "$repo/crates/clib/include" -I "$repo/crates/gpu/kernels" \
        -I "$repo/examples/gpu" "$repo/$program.cu" -o "$dir/tmp/$(basename "$program")" -L "$pack/lib/gpuio" -lgpuio \
        >"$dir/logs/nvcc-$(basename "$program").log" 2>&1 &
    done
  fi
  file=$dir/data
  [ -e "$file" ] || "$pack/bin/dropin" make "$file" $((2 << 30))
  cat "$file" >/dev/null
  wait
  printf '{ "logging": { "dir": "%s", "level": "ERROR" }, "properties": { "allow_compat_mode": true } }\n' \
    "$dir/logs" >"$dir/cufile.json"
  device=$(stat -c %d "$dir")
  entry=/run/udev/data/b$((device >> 8 & 0xfff)):$((device & 0xff | device >> 12 & 0xfff00))
  if [ -n "${UDEV:-}" ] && [ ! -e "$entry" ]; then
    mkdir -p /run/udev/data
    printf 'E:ID_FS_USAGE=filesystem\nE:ID_FS_TYPE=%s\n' "$(stat -f -c %T "$dir" | sed 's,ext2/ext3,ext4,')" >"$entry"
  fi
else
  file=$dir/data
fi

row "a C program writes and reads" 60 ours "$pack/bin/write_read" "$dir/wr" 1000003
row "tests of the library" 240 tests "$pack/tests/client"
row "files that other processes change" $((${MODEL_SECONDS:-60} + 60)) tests GPUIO_MODEL_DIR="$dir/tmp" \
  GPUIO_MODEL_SECONDS="${MODEL_SECONDS:-60}" "$pack/tests/client" --ignored model::
row "mapped_writes" 120 mapped_writes
row "gpuio.h: a mapped file" 60 mapped_file 4097 1000000007
for seed in 1 2; do
  row "kernels' own I/O, random, seed $seed" 60 kernels random "$dir/rings" $seed 40 0
done
row "kernels' own I/O, random, O_DIRECT" 60 kernels random "$dir/rings" 3 20 1
row "kernels' own I/O, files that change" 60 kernels twin changes "$dir/twins" 1 40 0
row "kernels' own I/O, files that change, O_DIRECT" 60 kernels twin changes "$dir/twins" 2 20 1
row "kernels' own I/O, files that change meanwhile" 60 kernels twin beside "$dir/twins" 3 40 0
row "kernels' own I/O, pointer chase" 90 kernels pointer_chase "$dir/nodes" 65536 128 8 5000
row "kernels' own I/O, look-up in PyTorch" 90 lookup
row "memcheck, kernels' own I/O" 90 kernels_checked memcheck random "$dir/rings" 4 2 0
row "racecheck, kernels' own I/O" 90 kernels_checked racecheck random "$dir/rings" 5 2 0
row "order with earlier work" 90 cuda_row ordering ordering "$dir/ordered" 10 200
row "attribute of registered memory" 30 cuda_row sync_memops memops "$dir/memops"
row "fio verifies" 120 verified fio
row "elbencho verifies" 150 verified elbencho
for shape in "16 4096" "8 1048576"; do
  for work in coop sync; do
    # shellcheck disable=SC2086 # two words
    row "$work beside $shape" 40 beside $work $shape
  done
done
row "graph beside 8 65536" 40 beside graph 8 65536
for shape in "8 1048576" "16 4096" "16 65536"; do
  for work in gemm8192 gemm2048 stream; do
    # shellcheck disable=SC2086 # threads and block
    row "$work beside $shape" 40 compute $work $shape
  done
done
row "green context beside 8 65536" 40 beside green 8 65536
row "memcheck, C program" 60 sanitized memcheck "$pack/bin/write_read" "$dir/wr" 1000003
row "memcheck, small reads" 60 sanitized memcheck "$pack/bin/dropin" sync "$file" --threads 2 --block 4096 \
  --random --seconds 0.5 --ramp 0.1 --check 8
row "memcheck, streams" 60 sanitized memcheck "$pack/bin/dropin" async "$file" --threads 1 --block 65536 \
  --seconds 0.5 --ramp 0.1 --check 8
row "racecheck, C program" 60 sanitized racecheck "$pack/bin/write_read" "$dir/wr" 1000003
row "racecheck, small reads" 60 sanitized racecheck "$pack/bin/dropin" sync "$file" --threads 2 --block 4096 \
  --random --seconds 0.5 --ramp 0.1 --check 8
load=(sync "$file" --threads 4 --block 4096 --random --seconds 2 --check 64)
row "2 processes" 60 several 2 "${load[@]}"
row "4 processes" 60 several 4 "${load[@]}"
row "8 processes and their page-locked memory" 90 eight 8 sync "$file" --threads 8 --block 1048576 --seconds 5 --check 8
row "cuda.bindings" 60 module cuda.bindings.cufile cuda_bindings.py
row "torch.cuda.gds" 90 module torch.cuda.gds torch_gds.py
row "fastsafetensors" 90 module fastsafetensors fastsafetensors_load.py
for test in "$pack"/tests/*; do
  name=$(basename "$test")
  only=() most=120
  case $name in
    client | tmpdir | *.so) continue ;;
    io-io) only=(path_reference:: path_mapped::) ;;
    # Its thousand starts take 190 s where the kernel is slow to make and to end rings.
    gpu-initiated) most=300 ;;
  esac
  row "tests of $name" "$most" tests "$test" "${only[@]}"
done
row "tests, CUDA_LAUNCH_BLOCKING=1" 240 tests CUDA_LAUNCH_BLOCKING=1 GPUIO_TEST_CALLS=500 "$pack/tests/client"

# MPS last: its server keeps the GPU while it runs.
no_mps="no nvidia-cuda-mps-control here"
if [ -z "$why" ] && command -v nvidia-cuda-mps-control >/dev/null; then
  mkdir -p "$dir/tmp/mps"
  export CUDA_MPS_LOG_DIRECTORY=$dir/tmp/mps
  if CUDA_MPS_PIPE_DIRECTORY=$dir/tmp/mps nvidia-cuda-mps-control -d >"$dir/logs/mps.log" 2>&1; then
    mps=$dir/tmp/mps
  else
    no_mps="MPS does not start: $(tail -n 1 "$dir/logs/mps.log")"
  fi
fi
row "MPS, a C program" 60 in_mps ours "$pack/bin/write_read" "$dir/wr" 1000003
row "MPS, 2 processes" 60 in_mps several 2 "${load[@]}"
row "MPS, 4 processes" 60 in_mps several 4 "${load[@]}"
row "MPS, coop beside 16 4096" 40 in_mps beside coop 16 4096

echo "$passed passed, $failed failed, $skipped skipped, in $SECONDS s; logs in $dir/logs"
[ "$failed" = 0 ] || exit 1
[ "$passed" != 0 ] || exit 3
