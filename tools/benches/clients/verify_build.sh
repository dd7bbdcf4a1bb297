#!/usr/bin/env bash
# Builds fio and elbencho with cuFile, from clones beside this repository, for verify.sh.
#
#   tools/benches/clients/verify_build.sh FIO_REPO ELBENCHO_REPO CUDA OUT
#
# CUDA has include/ and lib/ (or lib64/) with libcudart.so and libcufile.so; libcuda.so is looked for
# there, in its stubs/ and where the linker looks. OUT gets the two programs. Needs a C and a C++ compiler, make,
# and the packages libaio-dev, libnuma-dev, libboost-{program-options,thread,filesystem,system}-dev.
# elbencho's own build fetches sources of others by git. A clone that has them in external/ needs no
# network.
set -euo pipefail
fio=$(realpath "$1") elbencho=$(realpath "$2") cuda=$(realpath "$3")
mkdir -p "$4"
out=$(realpath "$4")
lib=$cuda/lib64
[ -e "$lib" ] || lib=$cuda/lib
paths="-L$lib -L$lib/stubs"
jobs=$(nproc)

(
  cd "$fio"
  CFLAGS="-I$cuda/include" LDFLAGS="$paths -Wl,--unresolved-symbols=ignore-in-shared-libs" \
    ./configure --enable-cuda --enable-libcufile --disable-native
  make -j"$jobs"
) >"$out/fio.log" 2>&1 || { tail -n 20 "$out/fio.log"; exit 1; }
cp "$fio/fio" "$out/"
(
  cd "$elbencho"
  LIBRARY_PATH="$lib:$lib/stubs" make -j"$jobs" BACKTRACE_SUPPORT=0 USE_MIMALLOC=0 \
    CUDA_SUPPORT=1 CUFILE_SUPPORT=1 CUDA_INCLUDE_PATH="$cuda/include" CUDA_LIB_PATH="$lib" \
    CUFILE_INCLUDE_PATH="$cuda/include" CUFILE_LIB_PATH="$lib"
) >"$out/elbencho.log" 2>&1 || { tail -n 20 "$out/elbencho.log"; exit 1; }
cp "$elbencho/bin/elbencho" "$out/"
ls -l "$out/fio" "$out/elbencho"
