#!/usr/bin/env bash
# Builds NVIDIA's public cuFile samples (repository NVIDIA/MagnumIO, gds/samples; NVIDIA's licence:
# run them, commit nothing of them) against gpuio's header and library.
#
#   tools/benches/clients/magnumio_build.sh SAMPLES LIBRARIES OUT
#
# SAMPLES is that directory, LIBRARIES the one with gpuio's libcufile.so, OUT gets the programs.
# CUDA_HOME has include/, lib/ or lib64/ and bin/nvcc (/usr/local/cuda; a wheel's nvidia/cu13 does).
# Needs OpenSSL's headers. ARCH is the GPU's (sm_90). Samples that do not build are listed at the end.
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
samples=$(realpath "$1")
libraries=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
cuda=${CUDA_HOME:-/usr/local/cuda}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The samples create contexts as CUDA 12 had it; the driver still has that call.
cat >"$work/ctx.h" <<'H'
#include <cuda.h>
#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#ifdef __cplusplus
extern "C"
#endif
CUresult cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
#define cuCtxCreate cuCtxCreate_v2
#endif
H
includes=(-I "$here/crates/dropin/include" -I "$cuda/include" -I "$cuda/include/cccl" -I "$cuda/cccl"
  -include "$work/ctx.h")
static=$(find -L "$cuda/lib64" "$cuda/lib" -name libcudart_static.a 2>/dev/null | head -n 1)
crypto=$(find -L /usr/lib -name libcrypto.a | head -n 1)
bad=()
nvcc=$cuda/bin/nvcc
"$nvcc" -arch="${ARCH:-sm_90}" -c "$samples/vectorAdd.cu" -o "$work/vectorAdd.o" 2>"$work/err" ||
  { cat "$work/err"; bad+=(vectorAdd.cu); }
for source in "$samples"/cufile_sample_*.c[cu]; do
  name=$(basename "${source%.*}")
  object=$work/$name.o
  case $source in
    *.cu) compile=("$nvcc" -arch="${ARCH:-sm_90}" -std=c++17) ;;
    *) compile=("${CXX:-g++}" -std=c++17 -O1) ;;
  esac
  "${compile[@]}" "${includes[@]}" -c "$source" -o "$object" 2>"$work/err" ||
    { bad+=("$name: $(grep -m 1 error "$work/err")"); continue; }
  # A driver to link with, where none is installed: its names are all that the linker wants.
  nm -u "$object" "$work/vectorAdd.o" | awk '$2 ~ /^cu[A-Z]/ && $2 !~ /^cuFile/ {print $2}' |
    sort -u | sed 's/.*/void &(void) {}/' >"$work/cuda.c"
  cc -shared -fPIC -Wl,-soname,libcuda.so.1 "$work/cuda.c" -o "$work/libcuda.so" 2>/dev/null
  "${CXX:-g++}" "$object" "$work/vectorAdd.o" -o "$out/$name" -L "$libraries" -lcufile "$static" \
    -L "$work" -lcuda "${crypto:--lcrypto}" -lrt -lpthread -ldl 2>"$work/err" ||
    bad+=("$name: $(grep -m 1 -E 'undefined|error|cannot' "$work/err")")
done
printf 'built %s programs in %s\n' "$(find "$out" -name 'cufile_sample_*' | wc -l)" "$out"
[ ${#bad[@]} = 0 ] || printf 'not built: %s\n' "${bad[@]}"
