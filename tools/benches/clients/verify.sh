#!/usr/bin/env bash
# fio and elbencho with verification through cuFile: which blocks come back as they were written?
# One line for each program, direction, block size, number of threads and library.
#
#   tools/benches/clients/verify.sh GPUIO DIRECTORY
#
# Write: through cuFile, then read back through cuFile and compared. Read: written by the CPU, read
# through cuFile and compared. DIRECTORY gets files of 256 MiB at most, and logs/. Environment:
#
#   FIO, ELBENCHO   the programs (verify_build.sh); without one its rows are left out
#   NVIDIA_CUFILE   directory of NVIDIA's libcufile.so.0; without it only gpuio's library is run
#   BLOCKS          "4k 16k 64k 256k 1m"
#   THREADS         "1 16"
#   UDEV=1          as root: write the disk's entry into /run/udev/data where there is none, which
#                   NVIDIA's library needs (5027 otherwise)
#
# Exit code: 1 if gpuio's library failed a row, else 0; rows of NVIDIA's are reported only.
set -uo pipefail
gpuio=$(realpath "$1")
mkdir -p "$2/logs"
dir=$(realpath "$2")
blocks=${BLOCKS:-4k 16k 64k 256k 1m}
threads=${THREADS:-1 16}
failed=0
if [ -n "${UDEV:-}" ]; then
  device=$(stat -c %d "$dir")
  entry=/run/udev/data/b$((device >> 8 & 0xfff)):$((device & 0xff | device >> 12 & 0xfff00))
  type=$(stat -f -c %T "$dir" | sed 's,ext2/ext3,ext4,')
  mkdir -p /run/udev/data
  [ -e "$entry" ] || printf 'E:ID_FS_USAGE=filesystem\nE:ID_FS_TYPE=%s\n' "$type" >"$entry"
fi
cat >"$dir/cufile.json" <<JSON
{ "logging": { "dir": "$dir/logs", "level": "ERROR" }, "properties": { "allow_compat_mode": true } }
JSON
export CUFILE_ENV_PATH_JSON=$dir/cufile.json

# The library, then the command.
with() {
  local library=$1
  shift
  if [ "$library" = gpuio ]; then
    timeout 120 "$gpuio" exec --cufile gpuio -- "$@"
  else
    LD_LIBRARY_PATH=$NVIDIA_CUFILE${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 120 "$@"
  fi
}

# fio: library, direction, block size, threads.
run_fio() {
  local library=$1 direction=$2 bs=$3 jobs=$4 each
  each=$(((bs_bytes <= 16384 ? 32 : 128) / jobs))m
  local common=(--name=v "--directory=$dir" "--bs=$bs" "--size=$each" "--numjobs=$jobs" --thread
    --verify=crc32c --verify_fatal=1 --group_reporting --output-format=terse)
  local cufile=(--ioengine=libcufile --cuda_io=cufile --gpu_dev_ids=0)
  rm -f "$dir"/v.*
  if [ "$direction" = write ]; then
    with "$library" "$FIO" "${common[@]}" "${cufile[@]}" --rw=randwrite --do_verify=1
  else
    timeout 120 "$FIO" "${common[@]}" --ioengine=psync --rw=write --do_verify=0 &&
      with "$library" "$FIO" "${common[@]}" "${cufile[@]}" --rw=randread
  fi
}

# elbencho: the same, and whether buffers are registered.
run_elbencho() {
  local library=$1 direction=$2 bs=$3 jobs=$4
  shift 4
  local size=128m
  [ "$bs_bytes" -gt 16384 ] || size=32m
  local common=(-b "$bs" -t "$jobs" -s "$size" --verify 1 --nolive)
  local cufile=(--cufile --gpuids 0 "$@")
  rm -f "$dir/e.data"
  if [ "$direction" = write ]; then
    with "$library" "$ELBENCHO" -w -r "${common[@]}" "${cufile[@]}" "$dir/e.data"
  else
    timeout 120 "$ELBENCHO" -w "${common[@]}" "$dir/e.data" &&
      with "$library" "$ELBENCHO" -r "${common[@]}" "${cufile[@]}" "$dir/e.data"
  fi
}

row() {
  local name=$1 library=$2 direction=$3 bs=$4 jobs=$5 code=0 log
  shift 5
  log=$dir/logs/$(echo "$name-$library-$direction-$bs-$jobs" | tr ' ' _).log
  "$@" >"$log" 2>&1 || code=$?
  [ "$code" = 0 ] || [ "$library" != gpuio ] || failed=$((failed + 1))
  printf '%-22s %-5s %5s %3s threads  %-7s %s\n' "$name" "$direction" "$bs" "$jobs" "$library" \
    "$([ "$code" = 0 ] && echo verified ||
      echo "FAILED ($code): $(grep -iE 'verif|error|mismatch|fail' "$log" | head -n 1 | cut -c1-110)")"
}

libraries="gpuio${NVIDIA_CUFILE:+ nvidia}"
for bs in $blocks; do
  bs_bytes=$(numfmt --from=iec "${bs^^}")
  for jobs in $threads; do
    for direction in write read; do
      for library in $libraries; do
        [ -z "${FIO:-}" ] || row fio "$library" $direction "$bs" "$jobs" run_fio "$library" $direction "$bs" "$jobs"
        [ -z "${ELBENCHO:-}" ] || {
          row elbencho "$library" $direction "$bs" "$jobs" run_elbencho "$library" $direction "$bs" "$jobs"
          row "elbencho --gdsbufreg" "$library" $direction "$bs" "$jobs" \
            run_elbencho "$library" $direction "$bs" "$jobs" --gdsbufreg
        }
      done
    done
  done
done
rm -f "$dir"/v.* "$dir/e.data"
echo "gpuio's library: $failed rows failed"
[ "$failed" = 0 ]
