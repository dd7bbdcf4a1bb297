#!/usr/bin/env bash
# Builds what hardware.sh needs, for a machine without cargo, into a directory or one archive.
#
#   tools/benches/hardware_pack.sh OUT            (OUT.tar.xz is packed, anything else is a directory)
#
# There: tar xf OUT.tar.xz && hardware/go.sh DIRECTORY. Environment, each left out where it is not set:
#   PROFILE        cargo's profile of the programs and libraries (release)
#   TEST_PROFILE   that of the test programs, which load those libraries (dev)
#   FIO, ELBENCHO  programs of clients/verify_build.sh
#   LIBRARIES      a directory of shared objects that these two need there
#   WHEELS         a directory of wheels for that machine's Python (fastsafetensors, cuda-bindings)
#   NVIDIA_CUFILE  a directory with NVIDIA's libcufile.so.0, to compare with
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
out=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
to=$work/hardware
mkdir -p "$to"/{bin,lib/gpuio,tests,repo/tools/benches,repo/examples,repo/crates/{dropin,clib}}

cd "$here"
cargo build --profile "${PROFILE:-release}" -p gpuio -p gpuio-dropin -p gpuio-clib -p gpuio-softgpu \
  -p gpuio-softcufile \
  --message-format json-render-diagnostics >"$work/built.json"
# Tests that run on the system's driver as well, and need no file of the repository.
cargo test --no-run --profile "${TEST_PROFILE:-dev}" --message-format json-render-diagnostics \
  -p gpuio-dropin -p gpuio-clib -p gpuio-gpu -p gpuio-transfer -p gpuio-io --test client --test map --test process \
  --test resident_copy --test resident_copy_list --test gather --test initiated --test pointer --test resident --test soft --test user \
  --test batch --test calls --test mapped --test mapped_stream --test stream --test mapped_file --test written --test io >"$work/tests.json"
python3 - "$work/built.json" "$work/tests.json" >"$work/list" <<'PY'
import json, os, sys
for number, path in enumerate(sys.argv[1:]):
    for line in open(path):
        made = json.loads(line)
        if made.get("reason") != "compiler-artifact":
            continue
        name, crate = made["target"]["name"], made["manifest_path"].split("/")[-2]
        if number == 1 and made.get("executable") and "test" in made["target"]["kind"]:
            print("test", name if crate == "dropin" else f"{crate}-{name}", made["executable"])
        elif number == 0 and made.get("executable"):
            print("bin", name, made["executable"])
        elif number == 0:
            for file in made["filenames"]:
                if "cdylib" in made["target"]["crate_types"] and file.endswith(".so"):
                    print("lib", os.path.basename(file), file)
PY
while read -r kind name file; do
  case $kind in
    test) strip -o "$to/tests/$name" "$file" ;;
    bin) strip -o "$to/bin/$name" "$file" ;;
    lib) strip -o "$to/lib/gpuio/$name" "$file" ;;
  esac
done <"$work/list"
mv "$to/lib/gpuio/libcufile.so" "$to/lib/gpuio/libcufile.so.0"
ln -s libcufile.so.0 "$to/lib/gpuio/libcufile.so"
mv "$to/lib/gpuio/libgpuio.so" "$to/lib/gpuio/libgpuio.so.0"
ln -s libgpuio.so.0 "$to/lib/gpuio/libgpuio.so"
# Test programs look for these beside themselves.
for name in libcufile.so libgpuio.so libgpuio_softgpu.so libgpuio_softcufile.so; do
  [ -e "$to/lib/gpuio/$name" ] || { echo "cargo built no $name" >&2; exit 1; }
  ln -s "../lib/gpuio/$name" "$to/tests/$name"
done
# Where tests make their files is part of the programs.
echo "${CARGO_TARGET_DIR:-$here/target}/tmp" >"$to/tests/tmpdir"
gcc -O2 -I "$here/crates/dropin/include" -I "$here/examples/c" "$here/examples/c/write_read.c" \
  -o "$to/bin/write_read" -L "$to/lib/gpuio" -lcufile -ldl
gcc -O2 -I "$here/crates/clib/include" -I "$here/examples/c" "$here/examples/c/map_file.c" \
  -o "$to/bin/map_file" -L "$to/lib/gpuio" -lgpuio -ldl
g++ -O2 -std=c++17 -I "$here/crates/dropin/include" -I "$here/examples/c" "$here/tools/benches/dropin.cpp" \
  -o "$to/bin/dropin" -ldl -pthread
cp -r tools/benches/{*.cu,gpu_memory.py,hardware.sh,hardware_report.py,clients} "$to/repo/tools/benches/"
cp -r examples/c examples/gpu "$to/repo/examples/"
cp -r crates/dropin/include "$to/repo/crates/dropin/"
cp -r crates/clib/include "$to/repo/crates/clib/"
mkdir -p "$to/repo/crates/clib/tests" "$to/repo/crates/gpu/kernels" "$to/repo/python"
cp -r crates/clib/tests/rings "$to/repo/crates/clib/tests/"
cp crates/gpu/kernels/gpuio_device.cuh "$to/repo/crates/gpu/kernels/"
cp -r python/gpuio "$to/repo/python/"
[ -z "${FIO:-}" ] || strip -o "$to/bin/fio" "$FIO"
[ -z "${ELBENCHO:-}" ] || strip -o "$to/bin/elbencho" "$ELBENCHO"
[ -z "${LIBRARIES:-}" ] || cp -rL "$LIBRARIES" "$to/lib/programs"
[ -z "${WHEELS:-}" ] || cp -r "$WHEELS" "$to/wheels"
[ -z "${NVIDIA_CUFILE:-}" ] || cp -rL "$NVIDIA_CUFILE" "$to/nvidia"
git rev-parse HEAD >"$to/commit" 2>/dev/null || true
cat >"$to/go.sh" <<'SH'
#!/usr/bin/env bash
here=$(cd "$(dirname "$0")" && pwd)
# Wheels go into a directory of their own: nothing that the machine has is changed.
[ ! -d "$here/wheels" ] || [ -d "$here/site" ] ||
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$here/site" "$here"/wheels/*.whl
[ ! -d "$here/site" ] || export PYTHONPATH=$here/site${PYTHONPATH:+:$PYTHONPATH}
exec "$here/repo/tools/benches/hardware.sh" "$here" "$@"
SH
chmod +x "$to/go.sh"
case $out in
  *.tar.xz) tar -C "$work" -c hardware | xz -6 -T0 >"$out" && du -sh "$to"/* "$out" ;;
  *) rm -rf "$out" && mv "$to" "$out" && du -sh "$out" ;;
esac
