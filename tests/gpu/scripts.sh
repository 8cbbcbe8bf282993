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

# Registers as ptxas says them: a spill in float is an error, one in double is told, one in a function that is called is
# neither, and a warning is an error.
mkdir "$work/ptxas"
cat >"$work/ptxas/nvcc" <<'END'
#!/bin/sh
said() {
  echo "ptxas info    : Compiling entry function '_ZN5infty6detail10run_blocksINS0_16AttentionForwardI$1EEEEvT_l' for 'sm_90'"
  echo "ptxas info    : Function properties for _ZN5infty6detail10run_blocksINS0_16AttentionForwardI$1EEEEvT_l"
  echo "    $2 bytes stack frame, $2 bytes spill stores, $2 bytes spill loads"
  echo "ptxas info    : Used $3 registers, used 1 barriers"
  echo "ptxas info    : Function properties for _ZNK5infty13GaussianBasisIfE9integralsElfff"
  echo "    144 bytes stack frame, 140 bytes spill stores, 140 bytes spill loads"
}
said f "${SPILLED:-0}" 127
said d 16 113
exit "${WARNED:-0}"
END
chmod +x "$work/ptxas/nvcc"
export INFTY_SPILLS=$work/spills
spills() { PATH=$work/ptxas:$PATH tests/gpu/spills "$@" 2>&1; }
said=$(spills) || fail "spills: $said"
contains "$said" "| kernel | float: sm_80, sm_90, sm_120 | double |"
contains "$said" '| `AttentionForward` | 127, 127, 127 | 113 + 32 B, 113 + 32 B, 113 + 32 B |'
status=0
said=$(SPILLED=8 spills 90) || status=$?
((status == 1)) || fail "a spill in float passed: $said"
contains "$said" "AttentionForward: 16 bytes"
status=0
said=$(WARNED=2 spills 90) || status=$?
((status == 1)) || fail "a warning passed: $said"
contains "$said" "FAILED to compile without a warning"
unset INFTY_SPILLS

# Loops as cuobjdump says them: the innermost, with what is in them.
cat >"$work/ptxas/cuobjdump" <<'END'
#!/bin/sh
echo "		Function : _ZN5infty6detail10run_blocksINS0_16AttentionForwardIfEEEEvT_l"
at=0
line() { printf '        /*%04x*/                   %s ;         /* 0x000000000f007986 */\n' $at "$1"; at=$((at + 16)); }
line "LDC R1, c[0x0][0x28]"
line "FMUL R0, R1, R2"
i=0
while [ $i -lt 12 ]; do line "FFMA R0, R1, R2, R3"; i=$((i + 1)); done
line "LDS.128 R4, [R0]"
line "IADD3 R5, R5, 0x1, RZ"
line "@!P0 FADD R0, R1, R2"
line "@P0 BRA 0x20"
line "@P1 BRA 0x10"
line "EXIT"
END
chmod +x "$work/ptxas/cuobjdump"
said=$(PATH=$work/ptxas:$PATH tests/gpu/loops some.cubin Attention)
contains "$said" '| `AttentionForward<float>` | 16 | 13 | 0.81 | 1 |'
[[ $(grep -c AttentionForward <<<"$said") == 1 ]] || fail "more loops than the innermost: $said"
said=$(PATH=$work/ptxas:$PATH tests/gpu/loops some.cubin Nothing)
lacks "$said" "Attention"

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
# tests FILE COMMANDS: a program of tests as far as check.sh knows one, in which each case runs the commands; one that
# fails ends the program with 1, as does `die` at once.
tests() {
  program "$1" 'if [ "$1" = --list-test-names-only ]; then cat "${0##*/}.names"; exit 3; fi
    [ "$1" = --input-file ] || exit 9
    worst=0
    while IFS= read -r name; do
      printf "began\t%s\n" "$name" >>"$INFTY_TEST_RECORD"
      echo "$name" >>calls
      passed=1
      '"$2"'
      if [ $passed = 1 ]; then what=passed; else what=failed; worst=1; fi
      printf "%s\t%s\n" $what "$name" >>"$INFTY_TEST_RECORD"
    done <"$2"
    exit $worst'
}
printf '%s\n' 'core, one' 'core: [two]' 'typed tests: one that forgets its backend - Types - 0' >"$work/core.names"
printf '%s\n' 'nn, one' 'nn: "two"' 'nn: three - float' >"$work/nn.names"
tests "$build/tests/test_core_cuda" 'case $name in *forgets*) passed=0 ;; esac; echo "$INFTY_DEVICE_POOL" >>pools'
# As on a GPU: what follows an error in a process fails with it.
tests "$build/tests/test_nn_cuda" 'printf "\033[31m\t"; case $name in *two*) broken=1 ;; esac; [ -z "$broken" ] || passed=0'
program "$build/tests/ceilings" 'echo "{}"'
packs() { PATH=$work/tools:$PATH tests/gpu/pack "$1" "$pack"; }
status=0
packs "$work/nothing" 2>"$work/said" || status=$?
((status == 1)) || fail "a folder without programs was packed"
contains "$(<"$work/said")" "has no programs"
# `./dev gpu` packs at every call: what was found of other programs or sources goes, of the same it stays.
found() { [[ -e $pack/results/tests.jsonl && -d $pack/rebuilt ]]; }
finds() { mkdir -p "$pack/results" "$pack/rebuilt" && touch "$pack/results/tests.jsonl"; }
finds
printf '%064d  test_core_cuda\n' 0 >"$pack/MANIFEST"
said=$(packs "$build")
[[ ! -e $pack/results && ! -e $pack/rebuilt ]] || fail "what was found of other programs was kept"
contains "$said" "MiB, 3 programs"
contains "$(<"$pack/MANIFEST")" "nvcc of a test"
contains "$(<"$pack/MANIFEST")" "test_core_cuda"
packed=$(cmake -E tar tf "$pack/pack.tar.xz")
contains "$packed" "src/include/infty/infty.hpp"
contains "$packed" "src/cuda/infty/thrust/cuda.hpp"
finds
said=$(packs "$build")
found || fail "what was found was lost by packing the same again"
[[ ! -e $pack.making ]] || fail "packing has left $pack.making"
rm -r "$pack/results" "$pack/rebuilt"

# check STATUS PATH ARGUMENT...: what check.sh says, which must end with this status.
check() {
  local expected=$1 path=$2 status=0
  shift 2
  said=$(PATH=$path:$PATH "$pack/check.sh" "$@" 2>&1) || status=$?
  ((status == expected)) || fail "check.sh $*: status $status, not $expected: $said"
}
rm -f "$work/tools/nvcc"
cp "$work/core.names" "$pack/test_core_cuda.names"
cp "$work/nn.names" "$pack/test_nn_cuda.names"
called() { grep -cxF "$1" "$pack/calls" || true; }

# Without a GPU every stage says in one line what it needs, and leaves nothing.
for stage in device tests sanitize demo kernels; do
  check 77 "$work/without" "$stage"
  contains "$said" "$stage: needs an NVIDIA GPU"
  [[ $said != *$'\n'* ]] || fail "more than a line: $said"
done
[[ ! -e $pack/results && ! -e $pack/bin ]] || fail "results, or programs unpacked, without a GPU"
mkdir "$pack/unpacking"  # as who was stopped in the middle of it leaves it
status=0
said=$(tests/gpu/check.sh device 2>&1) || status=$?
contains "$said" "no folder that"
check 2 "$work/without" nonsense
contains "$said" "no such stage: nonsense"

# With one, what passes is kept, what fails is tried again, and the rest of a stage goes on.
check 0 "$work/with" device
check 1 "$work/with" tests
contains "$said" "tests: FAILED"
[[ $(called 'nn, one') == 1 && $(called 'nn: "two"') == 2 && $(called 'nn: three - float') == 2 ]] ||
  fail "what failed was not tried alone: $(<"$pack/calls")"
check 1 "$work/with" tests
[[ $(called 'core, one') == 1 && $(called 'core: [two]') == 1 && $(called 'nn, one') == 1 && $(called 'nn: three - float') == 2 ]] ||
  fail "what had passed was run again: $(<"$pack/calls")"
[[ $(called 'nn: "two"') == 3 ]] || fail "what had failed was not tried again: $(<"$pack/calls")"
contains "$(<"$pack/results/logs/tests-nn.log")" 'nn: "two"'
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
# Time that is up in the middle of a program loses no case that has passed, however slow all of them are together.
tests "$pack/bin/test_nn_cuda" 'case $name in *three*) ;; *two*) [ -e ready ] || sleep 30 ;; *) passed=1 ;; esac'
rm -rf "$pack/results" "$pack/calls"
export INFTY_GPU_LIMIT=2
check 75 "$work/with" tests
contains "$said" "the time is up"
check 75 "$work/with" tests
touch "$pack/ready"
check 0 "$work/with" tests
[[ $(called 'nn, one') == 1 && $(called 'nn: "two"') == 3 && $(called 'nn: three - float') == 1 ]] ||
  fail "cases did not go on where they were stopped: $(<"$pack/calls")"
# A failure is worse than time, of whichever stage. What is killed before the time is up has failed.
rm -rf "$pack/results" "$pack/ready"
program "$pack/bin/ceilings" 'kill -9 $$'
check 137 "$work/with" tests device
contains "$said" "tests: the time is up"
contains "$said" "device: FAILED"
contains "$(<"$pack/results/device.jsonl")" "status 137"
unset INFTY_GPU_LIMIT
program "$pack/bin/ceilings" 'echo "{}"'
touch "$pack/ready"
rm -rf "$pack/results"

# What a tool finds is no case's: of a run in which it found something no case counts as passed.
mkdir "$work/sanitizer"
# Memcheck alone knows the third option.
cat >"$pack/options" <<'END'
[ "$1 $3 $4" = "--tool --error-exitcode 9" ] || { echo "options: $*"; exit 3; }
tool=$2
shift 4
[ $tool != memcheck ] || { [ "$1 $2" = "--report-api-errors no" ] || { echo "memcheck: $*"; exit 3; }; shift 2; }
END
program "$work/sanitizer/compute-sanitizer" '
  . ./options
  "$@" || exit 1
  [ ! -e dirty ] || { echo "========= Invalid __global__ write"; exit 9; }'
touch "$pack/dirty"
check 9 "$work/with:$work/sanitizer" sanitize
before=$(called 'core, one')
rm -f "$pack/dirty" "$pack/pools"
check 0 "$work/with:$work/sanitizer" sanitize
(($(called 'core, one') == before + 4)) || fail "cases counted that ran before a finding: $(<"$pack/calls")"
# The pool by which a tool sees every block is that stage's alone, whatever comes behind it.
[[ $(sort -u "$pack/pools") == exact ]] || fail "pools of a tool: $(<"$pack/pools")"
rm -r "$pack/pools" "$pack/results"
check 0 "$work/with:$work/sanitizer" sanitize tests
[[ $(sort -u "$pack/pools" | tr '\n' ' ') == " exact " ]] || fail "pools of a tool and of tests: $(<"$pack/pools")"
# The same where the time is up behind a finding, but not behind a summary of none.
program "$work/sanitizer/compute-sanitizer" '. ./options; "$@"; cat found; exec sleep 30'
for found in "ERROR SUMMARY: 0 errors" "Invalid __global__ write"; do
  echo "========= $found" >"$pack/found"
  rm -rf "$pack/results"
  status=75
  [[ $found == ERROR* ]] || status=1
  INFTY_GPU_LIMIT=3 check "$status" "$work/with:$work/sanitizer" sanitize
  kept=$(grep -cxF $'passed\tcore, one' "$pack/results/cases/sanitize-memcheck_test_core_cuda" || true)
  ((kept == (status == 75))) || fail "$found: $kept cases were kept"
done

# Losses of two backends that are told apart by more than rounding.
program "$pack/bin/sorting" '
  echo "$@" >>calls
  while [ "$1" != --backend ]; do shift; done; backend=$2
  while [ "$1" != --out ]; do shift; done; mkdir -p "$2"
  printf "attention\n" >"$2/attention.csv"
  printf "model,step,loss,accuracy\ninfty,1,1.5,0\n" >"$2/curves.csv"
  if [ $backend = eigen ]; then cat "losses" >>"$2/curves.csv"; else printf "infty,2,1.25,0\n" >>"$2/curves.csv"; fi'
echo "infty,2,1.2500004,0" >"$pack/losses"
check 0 "$work/with" demo
contains "$(<"$pack/results/demo.jsonl")" "the largest difference of 2 losses is 4e-07"
for losses in "infty,2,1.251,0" "infty,2,null,0" "infty,3,1.25,0" ""; do
  echo "$losses" >"$pack/losses"
  rm -rf "$pack/results"
  check 1 "$work/with" demo
  contains "$said" "failed"
done

# The launches of a step are said to be unknown where there is no profiler.
check 0 "$work/with" kernels
contains "$(<"$pack/results/kernels.jsonl")" '"name": "launches of 5 steps", "status": "skipped"'

# A profiler is not to hold clocks where it may not.
mkdir "$work/ncu"
program "$work/ncu/ncu" 'echo "$*" >profiled'
rm -rf "$pack/results"
check 0 "$work/with:$work/ncu" kernels
contains "$(<"$pack/profiled")" "--clock-control none --set roofline --kernel-name regex:run_blocks"
contains "$(<"$pack/profiled")" "--filter-mode per-launch-config --launch-skip 3 --launch-count 1 bin/ceilings --kernels"

# The toolkit's tools and libraries need be on no path; what the loader does not find is said, and nothing is run.
program "$pack/bin/ceilings" 'echo "$PATH:$LD_LIBRARY_PATH:" >paths'
rm -rf "$pack/results"
CUDA_PATH=$work/toolkit check 0 "$work/with" device
contains "$(<"$pack/paths")" ":$work/toolkit/bin:"
contains "$(<"$pack/paths")" ":$work/toolkit/lib64:"
program "$pack/bin/ceilings" 'echo "{}"'
mkdir "$work/loader"
program "$work/loader/ldd" '
  printf "\tlibcublas.so.13 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f0000000000)\n"
  echo "bin/ceilings: /lib/libc.so.6: version \`GLIBC_2.99'"'"' not found (required by bin/ceilings)"'
rm -rf "$pack/results"
check 77 "$work/loader:$work/with" device
[[ $said == "device: needs what its programs are linked with: GLIBC_2.99 libcublas.so.13" ]] || fail "the loader: $said"
[[ ! -e $pack/results ]] || fail "results of programs that cannot be started"

# Conformance replays what the tests replay.
program "$pack/bin/conformance" 'for file; do echo "$file" >>replayed; done'
rm -rf "$pack/results"
check 0 "$work/with" tests
[[ $(grep -c golden/ "$pack/replayed") == $(ls tests/golden/*.safetensors tests/golden/{gpt2,other_sizes}/*.safetensors \
  tests/golden/gpt2/*_{dialogue,stems,layout}.json | wc -l) ]] || fail "replayed: $(<"$pack/replayed")"
check 0 "$work/with" again table
lacks "$said" "passed"

echo "all as it should be"
