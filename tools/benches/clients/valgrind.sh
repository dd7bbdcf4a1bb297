#!/usr/bin/env bash
# The tests of libcufile.so.0, which are programs that use it, under valgrind's memcheck, on the
# software GPU. A result line each; exit code 1 if memcheck finds anything.
#
#   tools/benches/clients/valgrind.sh [FILTER]
#
# Left out are tests that hand over addresses without memory on purpose, which memcheck reports.
# drd and helgrind know locks of pthreads and no futexes, so they are of no use here. GPUIO_TEST_CALLS
# says how many random calls each thread makes (100).
set -euo pipefail
cd "$(dirname "$0")/../../.."
export GPUIO_TEST_CALLS=${GPUIO_TEST_CALLS:-100}
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=valgrind -q --trace-children=yes --error-exitcode=9"
exec cargo test -p gpuio-dropin --test client -- --test-threads 1 "$@" \
  --skip batch::everything_may_be_mixed_and_what_fails_ends_too --skip file::what_is_refused_and_how \
  --skip process::a_context_that_is_destroyed --skip process::a_forked_child_has_host_memory
