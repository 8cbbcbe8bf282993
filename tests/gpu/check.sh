#!/usr/bin/env bash
# check.sh STAGE...: tries infty on a machine with a GPU, from a folder that `./dev gpu` or `./dev gpu pack` has made.
# Stages are device, tests, sanitize, demo, kernels, rebuild, or all of them; `table` prints what was found.
#
# Each stage keeps its time limit and goes on where it was stopped: what has passed is not run again, unless
# `again` comes first; of a program of tests, what has passed is each test case. Everything that was tried is a line
# of JSON in results/STAGE.jsonl, every test case a line of results/cases.
set -euo pipefail
self=$(realpath "${BASH_SOURCE[0]}")
cd "$(dirname "$self")"

# Who installs the toolkit is left to say where it is: its tools and libraries may be on no path.
toolkit=$(command -v nvcc || true)
toolkit=$([[ -z $toolkit ]] || dirname "$(dirname "$(realpath "$toolkit")")")
for folder in "${CUDA_PATH:-}" "$toolkit" /usr/local/cuda; do
  [[ -n $folder ]] || continue
  PATH=$PATH:$folder/bin
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder/lib64:$folder/lib
done
export PATH LD_LIBRARY_PATH

results=$PWD/results
stages=(device tests sanitize demo kernels rebuild)
declare -A limits=([device]=60 [tests]=240 [sanitize]=480 [demo]=420 [kernels]=360 [rebuild]=540)
declare -A needs=(
  [device]="an NVIDIA GPU" [tests]="an NVIDIA GPU" [sanitize]="an NVIDIA GPU and compute-sanitizer"
  [demo]="an NVIDIA GPU" [kernels]="an NVIDIA GPU" [rebuild]="nvcc and CMake")
exit_unable=77   # as ctest counts a test that was skipped
exit_unready=75  # the time is up: call it again

usage() {
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$self"
}

# ---- what was found --------------------------------------------------------------------------

quoted() {  # a JSON string
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\t'/ }
  text=${text//[$'\x01'-$'\x09\x0b'-$'\x1f']/}
  printf '"%s"' "${text//$'\n'/\\n}"
}

# record STAGE NAME STATUS SECONDS NOTE
record() {
  printf '{"stage": "%s", "name": %s, "status": "%s", "seconds": %s, "note": %s}\n' \
    "$1" "$(quoted "$2")" "$3" "$4" "$(quoted "$5")" >>"$results/$1.jsonl"
}

has_passed() {  # STAGE NAME
  [[ -e $results/$1.jsonl ]] && grep -qF "\"name\": $(quoted "$2"), \"status\": \"passed\"" "$results/$1.jsonl"
}

# attempt STAGE NAME COMMAND...: runs it unless it has passed, within what is left of the stage's time.
attempt() {
  local at=$1 name=$2 status=0 begin=$SECONDS left log
  shift 2
  ! has_passed "$at" "$name" || return 0
  left=$((deadline - SECONDS))
  ((left > 0)) || return "$exit_unready"
  log=$results/logs/$at-${name//[^A-Za-z0-9._-]/_}.log
  timeout --kill-after=10 "$left" "$@" >"$log" 2>&1 </dev/null || status=$?
  local seconds=$((SECONDS - begin)) note
  note=$(tail -n 3 "$log")
  # What is killed before the time is up was not killed by `timeout`, but as the system does where memory is short.
  ((status != 137 || SECONDS < deadline)) || status=124
  local what
  case $status in
    0) what=passed ;;
    "$exit_unable") what=skipped ;;
    124) what=stopped && status=$exit_unready ;;
    *) what=failed && note="status $status: $note" ;;
  esac
  record "$at" "$name" "$what" "$seconds" "$note"
  printf '%-9s %5d s  %s\n' "$what" "$seconds" "$at: $name"
  return "$status"
}

# try STAGE NAME COMMAND...: attempts it; the stage's outcome is the worst of all, and a failure is worse than time.
try() {
  local status=0
  attempt "$@" || status=$?
  worsen "$status"
}

worsen() {  # STATUS: the outcome is the worse of what it was and this
  # From best to worst: passed, skipped, out of time, failed.
  (($1 == 0 || outcome != 0 && outcome != exit_unready && outcome != exit_unable)) && return
  (($1 == exit_unable && outcome == exit_unready)) || outcome=$1
}

# case_by_case FILE PROGRAM [TOOL...]: runs those test cases of a program that have not passed by FILE, where the
# program itself writes which begin, pass and fail. All that have never begun run in one go. What failed, or was
# running when the program ended, is tried once more alone: behind an error on a GPU all that follows in a process
# fails. With a tool, what it finds is no test case's, so that nothing counts that ran before it found something.
case_by_case() {
  local file=$1 program=$2 status=0 name
  shift 2
  export INFTY_TEST_RECORD=$file
  touch "$file"
  cp "$file" "$file.before"
  # Catch2 v2, which ends with the number of names, and v3.
  "$program" --list-test-names-only >"$file.listed" 2>/dev/null || true
  [[ -s $file.listed ]] || "$program" --list-tests --verbosity quiet >"$file.listed" || true
  # ctest wants these to fail (tests/CMakeLists.txt).
  grep -v '^typed tests: one that forgets its backend' "$file.listed" >"$file.all" || true
  [[ -s $file.all ]] || { echo "$program lists no test cases" && return 1; }
  awk -F '\t' 'FILENAME == ARGV[1] { seen[$2]; next } !($0 in seen)' "$file" "$file.all" >"$file.new"
  if [[ -s $file.new ]]; then
    "$@" "$program" --input-file "$file.new" || status=$?
    ((status != exit_unable)) || return "$exit_unable"
  fi
  while IFS= read -r name; do
    ((status == 0 || $# == 0)) || break
    printf '%s\n' "$name" >"$file.one"
    "$@" "$program" --input-file "$file.one" || status=$?
  done < <(unpassed "$file")
  if (($# > 0 && status != 0)); then
    cp "$file.before" "$file"
    return "$status"
  fi
  [[ -z $(unpassed "$file") ]] || { echo "not passed:" && unpassed "$file" && return 1; }
}

unpassed() {  # the names of FILE.all that have not passed by FILE
  awk -F '\t' 'FILENAME == ARGV[1] { if ($1 == "passed") done[$2]; next } !($0 in done)' "$1" "$1.all"
}

# cases STAGE NAME PROGRAM [TOOL...]: a command that tries a program case by case.
cases() {
  local file="$results/cases/$1-${2//[^A-Za-z0-9._-]/_}"
  mkdir -p "$results/cases"
  shift 2
  printf '%q ' "$self" case-by-case "$file" "$@"
}

# four STAGE: reads lines NAME<tab>COMMAND and attempts them, four at a time.
four() {
  local at=$1 name command running=() pid status
  while IFS=$'\t' read -r name command; do
    while (($(jobs -rp | wc -l) >= 4)); do wait -n || true; done
    attempt "$at" "$name" bash -c "$command" &
    running+=($!)
  done
  for pid in "${running[@]}"; do
    status=0
    wait "$pid" || status=$?
    worsen "$status"
  done
}

# ---- stages ----------------------------------------------------------------------------------

programs() {  # the programs of typed tests
  local program
  for program in bin/test_*_cuda; do [[ ! -x $program ]] || echo "$program"; done
}

# What tests/CMakeLists.txt replays.
golden() {
  local golden=src/tests/golden
  compgen -G "$golden/*.safetensors" || true
  compgen -G "$golden/other_sizes/*.safetensors" || true
  compgen -G "$golden/gpt2/*.safetensors" || true
  local kind
  for kind in dialogue stems layout; do compgen -G "$golden/gpt2/*_$kind.json" || true; done
}

run_device() {
  try device nvidia-smi nvidia-smi
  try device build cat MANIFEST
  try device ceilings bin/ceilings --ceilings
}

# What is small and says most comes first.
run_tests() {
  local program first=(core cuda autograd) subject
  four tests < <(
    for subject in "${first[@]}"; do
      program=bin/test_${subject}_cuda
      [[ ! -x $program ]] || printf '%s\t%s\n' "$subject" "$(cases tests "$subject" "$program")"
    done
    for program in $(programs); do
      subject=${program#bin/test_}
      subject=${subject%_cuda}
      [[ " ${first[*]} " == *" $subject "* ]] || printf '%s\t%s\n' "$subject" "$(cases tests "$subject" "$program")"
    done
    [[ ! -x bin/conformance ]] || printf 'conformance\tbin/conformance --backend cuda %s\n' "$(golden | xargs)"
  )
}

# One thing at a time: the tools slow programs down by tens of times.
run_sanitize() {
  local tool program
  local -x INFTY_DEVICE_POOL=exact
  for tool in memcheck racecheck synccheck initcheck; do
    for program in bin/test_core_cuda bin/test_cuda_cuda bin/test_nn_cuda bin/test_signal_cuda; do
      [[ ! -x $program ]] || sanitized "$tool" "$program"
    done
  done
}

sanitized() {  # TOOL PROGRAM
  local name="$1 ${2#bin/}" command
  local options=(--tool "$1" --error-exitcode 9)
  # Tests ask for what cannot be had, memory for one, and are answered by an error that is no finding.
  [[ $1 != memcheck ]] || options+=(--report-api-errors no)
  command=$(cases sanitize "$name" "$2" compute-sanitizer "${options[@]}")
  try sanitize "$name" bash -c "exec $command"
  # Stopped after it had found something: nothing that ran counts.
  local log=$results/logs/sanitize-${name//[^A-Za-z0-9._-]/_}.log
  local file=$results/cases/sanitize-${name//[^A-Za-z0-9._-]/_}
  if ! has_passed sanitize "$name" && [[ -e $log ]] &&
    grep '^========= ' "$log" | grep -qv 'COMPUTE-SANITIZER\|SUMMARY: 0 '; then
    cp "$file.before" "$file"
    worsen 1
  fi
}

# Whether the losses of two folders of results are the same steps and differ by no more than rounding: in 100 steps of
# a smaller model backends on a CPU differ by 5e-7 (tests/cuda/sorting_agreement.cpp). Words of awk, for `attempt`.
losses_agree='
  FNR == 1 { next }
  NR == FNR { loss[$1 "," $2] = $3; ++steps; next }
  !(($1 "," $2) in loss) { print "only in one: " $1 ", step " $2; bad = 1; next }
  { ++both; d = $3 - loss[$1 "," $2]; d = d < 0 ? -d : d; if (d > most) { most = d; at = $1 ", step " $2 } }
  $3 !~ /^[0-9]/ { print "no number: " $0; bad = 1 }
  END { if (both == 0 || both != steps) { print steps + 0 " and " both + 0 " losses"; exit 1 }
        printf "the largest difference of %d losses is %g (%s)\n", both, most, at
        exit bad || most > 1e-4 }'

run_demo() {
  local run
  if [[ ! -x bin/sorting ]]; then
    record demo sorting skipped 0 "bin/sorting was not built"
    echo "demo: bin/sorting is not here" && outcome=$exit_unable
    return
  fi
  for run in first second; do
    try demo "$run" bin/sorting --backend cuda --out "$results/demo-$run"
  done
  try demo "the same bits twice" cmp "$results/demo-first/attention.csv" "$results/demo-second/attention.csv"
  try demo "the same losses twice" cmp "$results/demo-first/curves.csv" "$results/demo-second/curves.csv"
  for run in cuda eigen; do
    try demo "30 steps, $run" bin/sorting --backend "$run" --steps 30 --warmup 5 --out "$results/demo-$run"
  done
  try demo "losses as on the CPU" awk -F , "$losses_agree" "$results/demo-cuda/curves.csv" "$results/demo-eigen/curves.csv"
  try demo "8000 tokens, 30 steps" bin/sorting --backend cuda --paper 8000 --steps 30 --warmup 5 --out "$results/demo-paper"
}

run_kernels() {
  try kernels times bin/ceilings --kernels
  if command -v ncu >/dev/null; then
    # One launch of each of our kernels that is measured, of each size, behind those that warm up.
    try kernels ncu ncu --clock-control none --set roofline --kernel-name regex:run_blocks \
      --filter-mode per-launch-config --launch-skip 3 --launch-count 1 bin/ceilings --kernels
  else
    record kernels ncu skipped 0 "ncu is not here"
  fi
  run_steps
}

# The launches of a training step and the gaps between them, where a profiler is.
run_steps() {
  local tool=nsys
  if command -v nsys >/dev/null && [[ -x bin/sorting ]]; then
    try kernels "launches of 5 steps" nsys profile --trace=cuda --stats=true --force-overwrite=true \
      --output="$results/steps" bin/sorting --backend cuda --steps 5 --warmup 1 --out "$results/demo-steps"
  else
    [[ -x bin/sorting ]] || tool=bin/sorting
    record kernels "launches of 5 steps" skipped 0 "$tool is not here"
  fi
}

run_rebuild() {
  local architecture=native
  nvidia-smi -L >/dev/null 2>&1 || architecture=80-real  # that it compiles is worth knowing, too
  try rebuild configure cmake -S src -B rebuilt --preset cuda "-DCMAKE_PREFIX_PATH=$PWD/deps/usr" \
    -DINFTY_THRUST=OFF -DINFTY_BENCHMARKS=OFF -DINFTY_SLOW_TESTS=OFF -DINFTY_TEST_DATA=src/tests \
    -DCMAKE_CUDA_ARCHITECTURES=$architecture
  ((outcome != 0)) || try rebuild test_cuda_cuda cmake --build rebuilt --target test_cuda_cuda -j "$(nproc)"
}

# unable STAGE: why it cannot be run here, in one line; empty if it can.
unable() {
  [[ -e MANIFEST ]] || { echo "this is no folder that \`./dev gpu pack\` made" && return; }
  command -v cmake >/dev/null || { echo "CMake is not here" && return; }
  if [[ $1 == rebuild ]]; then
    command -v nvcc >/dev/null || echo "nvcc is not here"
    return
  fi
  command -v nvidia-smi >/dev/null || { echo "nvidia-smi is not here" && return; }
  nvidia-smi -L >/dev/null 2>&1 || { echo "nvidia-smi finds no GPU" && return; }
  [[ $1 != sanitize ]] || command -v compute-sanitizer >/dev/null || echo "compute-sanitizer is not here"
}

# Programs, sources and headers, whole or not at all: the programs come last.
unpack() {
  [[ ! -d bin ]] || return 0
  rm -rf unpacking src deps
  mkdir unpacking
  (cd unpacking && cmake -E tar xf ../pack.tar.xz)
  mv unpacking/src src
  mv unpacking/deps deps
  mv unpacking/bin bin
  rmdir unpacking
}

missing() {  # what the loader does not find for the programs, in one line; empty if it finds all
  { ldd bin/* 2>&1 || true; } |
    sed -n "s/^[[:space:]]*\([^ ]*\) => not found.*/\1/p; s/.*: version .\([^ ]*\). not found.*/\1/p" | sort -u | xargs
}

run_stage() {
  local at=$1 reason
  reason=$(unable "$at")
  if [[ -n $reason ]]; then
    echo "$at: needs ${needs[$at]}: $reason"
    return "$exit_unable"
  fi
  unpack
  [[ $at == rebuild ]] || reason=$(missing)
  if [[ -n $reason ]]; then
    echo "$at: needs what its programs are linked with: $reason"
    return "$exit_unable"
  fi
  mkdir -p "$results/logs"
  deadline=$((SECONDS + ${INFTY_GPU_LIMIT:-${limits[$at]}}))
  local outcome=0
  "run_$at"
  case $outcome in
    0) echo "$at: passed" ;;
    "$exit_unable") echo "$at: skipped, see $results" ;;
    "$exit_unready") echo "$at: the time is up; call it again to go on" ;;
    *) echo "$at: FAILED" ;;
  esac
  return "$outcome"
}

# The last word on each thing that was tried, for docs/gpu.md.
table() {
  echo "| stage | what | result | seconds |"
  echo "|---|---|---|---|"
  local at
  for at in "${stages[@]}"; do
    [[ -e $results/$at.jsonl ]] || continue
    sed 's/^{"stage": "\([^"]*\)", "name": "\([^"]*\)", "status": "\([^"]*\)", "seconds": \([0-9]*\),.*/\1\t\2\t\3\t\4/' \
      "$results/$at.jsonl" |
      awk -F '\t' '!($2 in row) { order[++n] = $2 } { row[$2] = "| " $1 " | " $2 " | " $3 " | " $4 " |" }
                   END { for (i = 1; i <= n; ++i) print row[order[i]] }'
  done
}

(($# > 0)) || { usage && exit 2; }
if [[ $1 == case-by-case ]]; then
  case_by_case "${@:2}"
  exit
fi
chosen=()
for word in "$@"; do
  case $word in
    again) rm -rf "$results" ;;
    table) chosen+=(table) ;;
    all) chosen+=("${stages[@]}") ;;
    device | tests | sanitize | demo | kernels | rebuild) chosen+=("$word") ;;
    *) echo "check.sh: no such stage: $word; there are ${stages[*]}, all, again and table" >&2 && exit 2 ;;
  esac
done
outcome=0
for stage in "${chosen[@]}"; do
  [[ $stage != table ]] || { table && continue; }
  status=0
  run_stage "$stage" || status=$?
  worsen "$status"
done
exit "$outcome"
