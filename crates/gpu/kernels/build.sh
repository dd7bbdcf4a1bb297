#!/bin/sh
# Makes pattern.ptx from pattern.cu with clang and no CUDA SDK; see README.md.
# usage: build.sh [clang]          (default: clang-14)
set -eu
cd "$(dirname "$0")"
clang=${1:-clang-14}

# FNV-1a, 64 bits: sh has 64-bit signed arithmetic, whose product wraps as FNV wants. The bytes
# come from od, so that the script needs nothing beyond POSIX.
hash=$(od -An -v -tu1 pattern.cu | tr -s ' \n' '\n\n' | awk 'NF' | {
    h=-3750763034362895579 # 0xcbf29ce484222325 as a signed number
    while read -r byte; do
        h=$(((h ^ byte) * 1099511628211))
    done
    printf '%016x' "$h"
})

"$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
    -Xclang -target-feature -Xclang +ptx60 -Wno-unknown-cuda-version \
    -std=c++17 -O3 -ffp-contract=off -fno-ident -S pattern.cu -o pattern.ptx.new
{
    printf '// made by kernels/build.sh from pattern.cu fnv1a64:%s\n' "$hash"
    cat pattern.ptx.new
} >pattern.ptx
rm pattern.ptx.new
