#!/usr/bin/env bash
# Runs clients of cuFile under gpuio exec on this machine's GPU, and reports each result.
#
#   tools/benches/clients/run.sh GPUIO DIRECTORY
#
# DIRECTORY, on the file system to use, gets test files and logs. What is not given is left out, and
# said to be. Environment:
#
#   PYTHON       with NumPy, and what a row needs: PyTorch; cuda-bindings; fastsafetensors; kvikio with
#                CuPy, dask, pytest, pytest-asyncio and pytest-timeout (python3)
#   KVIKIO_TESTS python/kvikio/tests of KvikIO's repository, at the tag of the wheel; its
#                pyproject.toml lies above it
#   MAGNUMIO     programs that magnumio_build.sh made
#   SOFTWARE=1   the software GPU, where rows that need PyTorch or CUDA's runtime can't run
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
gpuio=$(realpath "$1")
mkdir -p "$2/logs"
dir=$(realpath "$2")
python=${PYTHON:-python3}
# KvikIO's asynchronous calls reach cuFile only where there is a configuration; in a container
# without /run/udev nothing of KvikIO's does, unless compatibility mode is off.
echo '{}' >"$dir/cufile.json"
export CUFILE_ENV_PATH_JSON=$dir/cufile.json KVIKIO_COMPAT_MODE=OFF GPUIO_CUFILE=gpuio
if [ -n "${SOFTWARE:-}" ]; then
  export GPUIO_CUFILE_DRIVER="$(dirname "$gpuio")/libgpuio_softgpu.so"
  mkdir -p "$dir/cuda"
  ln -sf "$GPUIO_CUFILE_DRIVER" "$dir/cuda/libcuda.so.1"
  export LD_LIBRARY_PATH="$dir/cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  # A stand-in of what KvikIO's tests use of CuPy, which needs a real GPU.
  export PYTHONPATH="$here/soft_cupy${PYTHONPATH:+:$PYTHONPATH}"
fi
# A module by the name that it had before CUDA 13, which KvikIO's tests ask for.
export PYTHONPATH="$here/old_names${PYTHONPATH:+:$PYTHONPATH}"
failed=0

# Name, seconds, then the command.
client() {
  local name=$1 limit=$2 code=0
  shift 2
  timeout "$limit" "$gpuio" exec -- "$@" >"$dir/logs/$name.log" 2>&1 || code=$?
  [ "$code" = 0 ] || failed=$((failed + 1))
  printf '%-28s exit %-3s %s\n' "$name" "$code" \
    "$(grep -vE '^ *$|library: ' "$dir/logs/$name.log" | tail -n 1 | cut -c1-150)"
}
lacks() { printf '%-28s not run: %s\n' "$1" "$2"; }
has() { "$python" -c "import $1" 2>/dev/null; }

if has cuda.bindings.cufile; then
  client cuda.bindings 120 "$python" "$here/cuda_bindings.py" "$dir"
else
  lacks cuda.bindings "no cuda-bindings here"
fi
if has "torch, sys; sys.exit(not torch.cuda.is_available())"; then
  client torch.cuda.gds 120 "$python" "$here/torch_gds.py" "$dir"
  if has fastsafetensors; then
    client fastsafetensors 120 "$python" "$here/fastsafetensors_load.py" "$dir"
  else
    lacks fastsafetensors "no fastsafetensors here"
  fi
else
  lacks torch.cuda.gds "no PyTorch with a GPU here"
fi
if [ -z "${KVIKIO_TESTS:-}" ]; then
  lacks KvikIO "KVIKIO_TESTS is not set"
elif ! "$gpuio" exec -- "$python" -c "import kvikio" 2>/dev/null; then
  lacks KvikIO "no kvikio in $python"
else
  # Its benchmarks are looked for beside its tests.
  rm -rf "$dir/kvikio" && mkdir -p "$dir/kvikio"
  cp -r "$KVIKIO_TESTS" "$dir/kvikio/tests"
  cp "$KVIKIO_TESTS/../pyproject.toml" "$dir/kvikio/" # pytest's settings: warnings are errors
  ln -s "$("$gpuio" exec -- "$python" -c 'import kvikio; print(kvikio.__path__[0])')" \
    "$dir/kvikio/kvikio"
  # Its benchmarks of HTTP and S3 need servers, and no cuFile.
  for test in test_basic_io test_async_io test_cufile_driver test_numpy test_benchmarks; do
    client "KvikIO-$test" 500 "$python" -m pytest -q -p no:cacheprovider -rfEs \
      -o asyncio_default_fixture_loop_scope=function \
      -k "not http_io and not s3_io" --rootdir "$dir/kvikio" --basetemp "$dir/kvikio/tmp" "$dir/kvikio/tests/$test.py"
  done
fi
if [ -n "${MAGNUMIO:-}" ]; then
  "$here/magnumio_run.sh" "$gpuio" "$MAGNUMIO" "$dir/magnumio" || failed=$((failed + 1))
else
  lacks "MagnumIO samples" "MAGNUMIO is not set"
fi
echo "$failed clients failed; logs in $dir/logs"
[ "$failed" = 0 ]
