#!/usr/bin/env bash
# Loaders of safetensors beside each other on this machine: gpuio, safetensors, fastsafetensors,
# InstantTensor and Run:ai's streamer. Prints a table for each case; a loader that fails or is not
# installed has a row that says so.
#
#   tools/benches/loaders.sh DIRECTORY [--gpus 1] [--gib 8] [--small 16000] [--case REGEX] [--loader REGEX]
#                            [--loads 4] [--passes 1] [--json FILE]
#
# DIRECTORY is on the file system to measure; the cases on tmpfs use a directory in /dev/shm. Each loader
# runs in a process of its own (one for each GPU), which loads --loads times: the first load counts for a
# program that loads its model once. Cases are large (tensors of 64 MiB) and small (--small tensors of
# 128 KiB), each on disk and on tmpfs, warm and cold (large, on disk; needs root). Bytes of all tensors
# are compared on the GPU after the first load. Files are removed. Environment: PYTHON (python3), with
# PyTorch, NumPy, gpuio and the other loaders. Exit code: 1 where a loader failed or bytes differ.
set -euo pipefail
[ $# -ge 1 ] && [ "${1#-}" = "$1" ] || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
exec "${PYTHON:-python3}" "$(dirname "$0")/loaders.py" "$@"
