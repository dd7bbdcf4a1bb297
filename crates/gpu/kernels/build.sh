#!/bin/sh
# Makes the PTX of each kernel from its source with clang and no CUDA SDK; see README.md.
# usage: build.sh [clang] [ptxas]  (default: clang-14; without ptxas the compiled code stays, and a
#                                   test fails if it is older than the PTX)
set -eu
cd "$(dirname "$0")"
clang=${1:-clang-14}

# FNV-1a, 64 bits: sh has 64-bit signed arithmetic, whose product wraps as FNV wants. The bytes
# come from od, so that the script needs nothing beyond POSIX.
fnv1a64() {
    cat "$@" | od -An -v -tu1 | tr -s ' \n' '\n\n' | awk 'NF' | {
        h=-3750763034362895579 # 0xcbf29ce484222325 as a signed number
        while read -r byte; do
            h=$(((h ^ byte) * 1099511628211))
        done
        printf '%016x' "$h"
    }
}

for name in pattern gather resident resident_copy busy initiated; do
    # `nanosleep` came with PTX ISA 6.3 (CUDA 10.0).
    isa=ptx60
    [ "$name" = resident_copy ] && isa=ptx63
    headers="device.cuh copy.cuh"
    [ "$name" = initiated ] && headers="$headers gpuio_device.cuh"
    "$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
        -Xclang -target-feature -Xclang "+$isa" -Wno-unknown-cuda-version \
        -std=c++17 -O3 -ffp-contract=off -fno-ident -S "$name.cu" -o "$name.ptx.new"
    {
        printf '// made by kernels/build.sh from %s.cu fnv1a64:%s\n' "$name" "$(fnv1a64 "$name.cu" $headers)"
        cat "$name.ptx.new"
    } >"$name.ptx"
    rm "$name.ptx.new"
done

[ -n "${2-}" ] || exit 0
mkdir -p compiled
for name in pattern gather resident_copy; do
    for arch in 80 90 100 120; do
        image=compiled/$name.sm_$arch.cubin
        "$2" "-arch=sm_$arch" -O3 "$name.ptx" -o "$image"
        printf '%s fnv1a64:%s from %s.ptx fnv1a64:%s\n' "$image" "$(fnv1a64 "$image")" "$name" "$(fnv1a64 "$name.ptx")"
    done
done >compiled/made
