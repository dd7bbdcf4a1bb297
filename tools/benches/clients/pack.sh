#!/usr/bin/env bash
# Packs what run.sh needs for a machine without a network, as one archive.
#
#   tools/benches/clients/pack.sh RELEASE OUT.tar.xz
#
# RELEASE is cargo's directory with gpuio, libcufile.so and libgpuio_softgpu.so. There:
#   tar xf OUT.tar.xz && clients/install.sh && clients/go.sh DIRECTORY    # the clients
#   clients/measure.sh DIRECTORY [ROUNDS]                                 # tools/benches/dropin.sh
# Environment, each left out where it is not set:
#   KVIKIO_REPO    a clone of rapidsai/kvikio at the tag of the wheel
#   MAGNUMIO       programs of magnumio_build.sh
#   WHEELS         a directory of wheels to install there, beside what its Python has
#   NVIDIA_CUFILE  a directory with NVIDIA's libcufile.so.0, to compare with
set -euo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
release=$(realpath "$1")
out=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
to=$work/clients
mkdir -p "$to/bin" "$to/lib/gpuio" "$to/repo/tools/benches" "$to/repo/examples" "$to/repo/crates/dropin"
strip -o "$to/bin/gpuio" "$release/gpuio"
strip -o "$to/lib/gpuio/libcufile.so.0" "$release/libcufile.so"
ln -s libcufile.so.0 "$to/lib/gpuio/libcufile.so"
for name in libgpuio_softgpu.so libgpuio_softcufile.so; do
  strip -o "$to/lib/gpuio/$name" "$release/$name"
  ln -s "../lib/gpuio/$name" "$to/bin/$name"
done
cp -r "$here"/tools/benches/{dropin*,gpu_memory.py,clients} "$to/repo/tools/benches/"
cp -r "$here/examples/c" "$to/repo/examples/"
cp -r "$here/crates/dropin/include" "$to/repo/crates/dropin/"
# Where there is no compiler.
g++ -O2 -std=c++17 -I "$here/crates/dropin/include" -I "$here/examples/c" \
  "$here/tools/benches/dropin.cpp" -o "$to/bin/dropin" -ldl -pthread
[ -z "${MAGNUMIO:-}" ] || { mkdir "$to/magnumio" && strip "$MAGNUMIO"/* && cp "$MAGNUMIO"/* "$to/magnumio/"; }
[ -z "${WHEELS:-}" ] || cp -r "$WHEELS" "$to/wheels"
[ -z "${NVIDIA_CUFILE:-}" ] || cp -rL "$NVIDIA_CUFILE" "$to/nvidia"
if [ -n "${KVIKIO_REPO:-}" ]; then
  mkdir "$to/kvikio"
  cp -r "$KVIKIO_REPO"/python/kvikio/{tests,pyproject.toml} "$to/kvikio/"
fi
cat >"$to/install.sh" <<'SH'
#!/usr/bin/env bash
# Wheels into a directory of their own: nothing that the machine has is changed.
cd "$(dirname "$0")" && [ ! -d wheels ] ||
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target site wheels/*.whl
SH
cat >"$to/go.sh" <<'SH'
#!/usr/bin/env bash
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$here/site${PYTHONPATH:+:$PYTHONPATH}
[ ! -d "$here/kvikio" ] || export KVIKIO_TESTS=$here/kvikio/tests
[ ! -d "$here/magnumio" ] || export MAGNUMIO=$here/magnumio
exec "$here/repo/tools/benches/clients/run.sh" "$here/bin/gpuio" "$@"
SH
cat >"$to/measure.sh" <<'SH'
#!/usr/bin/env bash
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$here/site${PYTHONPATH:+:$PYTHONPATH} DROPIN=$here/bin/dropin
[ ! -d "$here/nvidia" ] || export NVIDIA_CUFILE=${NVIDIA_CUFILE:-$here/nvidia}
exec "$here/repo/tools/benches/dropin.sh" "$here/bin/gpuio" "$@"
SH
chmod +x "$to"/*.sh
tar -C "$work" -c clients | xz -6 -T0 >"$out"
du -sh "$to"/* "$out"
