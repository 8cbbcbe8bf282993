#!/usr/bin/env bash
# The scripts for a machine with a GPU, tried without one. Run in the repository's root.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
contains() { [[ $1 == *"$2"* ]] || fail "'$2' is not in: $1"; }
lacks() { [[ $1 != *"$2"* ]] || fail "'$2' is in: $1"; }

# Whether there is a GPU is nvidia-smi's word.
mkdir "$work/with" "$work/without"
printf '#!/bin/sh\nexit 0\n' >"$work/with/nvidia-smi"
printf '#!/bin/sh\nexit 9\n' >"$work/without/nvidia-smi"
chmod +x "$work"/*/nvidia-smi

options=$(PATH=$work/with:$PATH tests/gpu/options)
contains "$options" "-DCMAKE_CUDA_FLAGS_QUICK=-O3"
contains "$options" "-DCMAKE_CXX_FLAGS_QUICK=-O3"
contains "$options" "ARCHITECTURES=native"
lacks "$options" "-O0"
options=$(PATH=$work/without:$PATH tests/gpu/options)
contains "$options" "-Xptxas=-O0"
lacks "$options" "native"

# A folder as `./dev gpu pack` makes it, with programs that only say so.
build=$work/build pack=$work/pack
mkdir -p "$build/tests" "$build/examples" "$work/nothing"
program() {  # FILE COMMANDS
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
mkdir "$work/tools"
program "$work/tools/nvcc" 'echo "nvcc of a test"'
program "$work/tools/strip" 'exit 0'
program "$build/tests/test_core_cuda" 'echo core; echo core >>calls'
program "$build/tests/test_nn_cuda" 'printf "\\033[31m\\t"; echo "1 assertion \"failed\""; echo nn >>calls; exit 1'
program "$build/tests/ceilings" 'echo "{}"'
status=0
PATH=$work/tools:$PATH tests/gpu/pack "$work/nothing" "$pack" 2>"$work/said" || status=$?
((status == 1)) || fail "a folder without programs was packed"
contains "$(<"$work/said")" "has no programs"
said=$(PATH=$work/tools:$PATH tests/gpu/pack "$build" "$pack")
contains "$said" "MiB, 3 programs"
contains "$(<"$pack/MANIFEST")" "nvcc of a test"
contains "$(<"$pack/MANIFEST")" "test_core_cuda"
[[ -e $pack/src/include/infty/infty.hpp && -e $pack/src/cuda/infty/thrust/cuda.hpp ]] || fail "no sources"

# check STATUS PATH ARGUMENT...: what check.sh says, which must end with this status.
check() {
  local expected=$1 path=$2 status=0
  shift 2
  said=$(PATH=$path:$PATH "$pack/check.sh" "$@" 2>&1) || status=$?
  ((status == expected)) || fail "check.sh $*: status $status, not $expected: $said"
}
rm -f "$work/tools/nvcc"

# Without a GPU every stage says in one line what it needs, and leaves nothing.
for stage in device tests sanitize demo kernels; do
  check 77 "$work/without" "$stage"
  contains "$said" "$stage: needs an NVIDIA GPU"
  [[ $said != *$'\n'* ]] || fail "more than a line: $said"
done
[[ ! -e $pack/results ]] || fail "results without a GPU"
status=0
said=$(tests/gpu/check.sh device 2>&1) || status=$?
contains "$said" "no folder that"
check 2 "$work/without" nonsense
contains "$said" "no such stage: nonsense"

# With one, what passes is kept, what fails is tried again, and the rest of a stage goes on.
check 0 "$work/with" device
check 1 "$work/with" tests
contains "$said" "tests: FAILED"
check 1 "$work/with" tests
[[ $(grep -c core "$pack/calls") == 1 && $(grep -c nn "$pack/calls") == 2 ]] || fail "calls: $(<"$pack/calls")"
check 0 "$work/with" table
contains "$said" "| tests | core | passed |"
contains "$said" "| tests | nn | failed |"
! command -v python3 >/dev/null || python3 - "$pack"/results/*.jsonl <<'END' || fail "results are not JSON"
import json, sys
for path in sys.argv[1:]:
    for line in open(path):
        record = json.loads(line)
        assert {"stage", "name", "status", "seconds", "note"} <= set(record), record
END
check 77 "$work/with" demo
contains "$said" "bin/sorting"

# Time that is up is no failure, and the next call goes on.
program "$pack/bin/test_nn_cuda" 'echo nn >>calls; [ -e ready ] || sleep 30'
export INFTY_GPU_LIMIT=2
check 75 "$work/with" tests
contains "$said" "the time is up"
touch "$pack/ready"
check 0 "$work/with" tests
check 0 "$work/with" again table
lacks "$said" "passed"

echo "all as it should be"
