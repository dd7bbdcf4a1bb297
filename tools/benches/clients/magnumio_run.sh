#!/usr/bin/env bash
# Runs NVIDIA's public cuFile samples, as magnumio_build.sh made them, under gpuio exec.
#
#   tools/benches/clients/magnumio_run.sh GPUIO PROGRAMS DIRECTORY
#
# A line per sample: ok, or FAILED with its last words; logs in DIRECTORY/logs. A sample is ok where
# it exits with 0 and does not report a failure. LIBRARY=PATH runs them with that library instead,
# to see what NVIDIA's makes of the same program.
set -uo pipefail
gpuio=$(realpath "$1")
programs=$(realpath "$2")
mkdir -p "$3/logs"
dir=$(realpath "$3")
cd "$dir" || exit 1
[ -e cufile.json ] || echo '{}' >cufile.json
export CUFILE_ENV_PATH_JSON=$dir/cufile.json
source=$dir/source.bin
# What their README asks for.
[ -e "$source" ] || head -c $((128 << 20)) /dev/urandom >"$source"
failed=0

# The arguments of a sample: b and b2 are files with data, which it may change, w is none yet.
arguments() {
  case $1 in
    001 | 002) echo w 0 ;;
    007 | 008) ;;
    009 | 012 | 013) echo b b2 ;;
    010 | 011) echo b 0 0 ;;
    015) echo b w 0 "${2:-1}" ;;
    016 | 017 | 018) echo b ;;
    019) echo w 0 32 ;;
    020 | 021) echo b 0 32 ;;
    022) echo b 0 0 ;;
    023 | 025 | 026) echo b b2 ;;
    024) echo b 0 ;;
    027 | 029) echo b 0 32 ;;
    028) echo b 0 ;;
    030) echo b 0 32 "${2:-0}" 0 ;;
    *) echo b w 0 ;;
  esac
}

one() {
  local number=$1 mode=${2:-} words=() word code=0
  local log=$dir/logs/$number${mode:+-$mode}.log
  rm -f w b b2
  for word in $(arguments "$number" "$mode"); do
    case $word in
      w) words+=("$dir/w") ;;
      b | b2) cp --reflink=auto "$source" "$word"; words+=("$dir/$word") ;;
      *) words+=("$word") ;;
    esac
  done
  local with=("$gpuio" exec --cufile gpuio --)
  [ -z "${LIBRARY:-}" ] || with=(env LD_PRELOAD="$LIBRARY")
  timeout 120 "${with[@]}" "$programs/cufile_sample_$number" "${words[@]}" >"$log" 2>&1 || code=$?
  # 008 is about messages of errors.
  local words_of_failure='fail|mismatch|error|corrupt|not match'
  [ "$number" != 008 ] || words_of_failure='FAIL'
  if [ "$code" = 0 ] && ! grep -qiE "$words_of_failure" "$log"; then
    echo "ok $number${mode:+ mode $mode}"
  else
    failed=$((failed + 1))
    echo "FAILED $number${mode:+ mode $mode}: exit $code: $(grep -v '^$' "$log" | tail -n 1 | cut -c1-160)"
  fi
}

for program in "$programs"/cufile_sample_[0-9][0-9][0-9]; do
  number=${program##*_}
  case $number in
    015) for mode in 1 2 3; do one "$number" "$mode"; done ;; # kinds of memory
    030) for mode in 0 1; do one "$number" "$mode"; done ;; # registered and not
    *) one "$number" ;;
  esac
done
rm -f w b b2
echo "$failed failed"
[ "$failed" = 0 ]
