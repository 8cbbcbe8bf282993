#!/usr/bin/env bash
# What `./dev bench` refuses before it builds anything, and what benchmarks/record writes, tried without a
# benchmark. Run in the repository's root.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
contains() { [[ $1 == *"$2"* ]] || fail "'$2' is not in: $1"; }
lacks() { [[ $1 != *"$2"* ]] || fail "'$2' is in: $1"; }

refused() {  # TEXT ARGUMENT...
  local said status=0
  said=$(./dev bench "${@:2}" 2>&1) || status=$?
  ((status == 1)) || fail "bench ${*:2}: status $status"
  contains "$said" "$1"
}
refused "no benchmarks of 'results'; there are core," results
refused "no benchmarks of 'support'" core support
refused "scaling takes no --colour: there are --longest," scaling --longest 4096 --colour red
refused "scaling takes no --layers" scaling --layers=2
refused "--dim wants a number, and nothing stands behind it" scaling --dim
refused "--out wants a folder, and nothing stands behind it" growth --out
refused "--out is empty: it must be a folder" ranks --out=
refused "ranks takes no --costs: it measures what it predicts from" ranks --costs one.json

# A copy of `record` with a `dev` that prints a table of a kernel, or fails behind it.
mkdir -p "$work/benchmarks/results" "$work/docs/figures/scaling" "$work/build/bench" "$work/build/scaling" "$work/bin"
cp benchmarks/record "$work/benchmarks"
cat >"$work/dev" <<'DEV'
#!/bin/sh
if [ "$2" = scaling ]; then
  echo "time per token at 4096 tokens of context: 1"
  exit "${SCALING:-0}"
fi
cat <<'TABLE'
building
### nn_layers

| benchmark | time | rate | limit | share |
|:-|-:|-:|-:|-:|
| linear<float> 1 | 1.00 ms | 10.0 GFLOP/s | 20.0 GFLOP/s | 50 % |
| linear<float> 2 | 2.00 ms | 10.0 GFLOP/s | 20.0 GFLOP/s | 49 % |
| forward_rounded 2 | 2.00 ms | 10.0 GFLOP/s | 10.1 GFLOP/s | 99 % |
| backward_rounded 2 | left out: no such instruction here | | | |
| power 2 | 2.00 ms | 10.0 vector/s | 20.0 vector/s | 50 % |
TABLE
exit "${BENCH:-0}"
DEV
printf '#!/bin/sh\necho abc123\n' >"$work/bin/git"
chmod +x "$work/dev" "$work/bin/git"
echo "CMAKE_CXX_COMPILER:FILEPATH=/bin/true" >"$work/build/bench/CMakeCache.txt"
echo '  "command": "c++ -I/x -O3 -Wall -O3 -march=native -std=gnu++20 -o limits.cpp.o -c /x/core/limits.cpp",' \
  >"$work/build/bench/compile_commands.json"
touch "$work"/build/scaling/{context,sizes}.{csv,svg} "$work"/build/scaling/{ranks.svg,growth.csv}
page=$work/docs/performance.md
printf '%s\n' before '<!-- the table of benchmarks/record begins -->' old '<!-- the table of benchmarks/record ends -->' \
  behind >"$page"
record() { PATH=$work/bin:$PATH "$work/benchmarks/record" "$@" 2>&1; }

# Of a subject: nothing but build/record.
said=$(record nn) || fail "record nn: $said"
contains "$said" "wrote build/record/"
contains "$(cat "$page")" old
[[ -z $(ls "$work/benchmarks/results") ]] || fail "record nn wrote into benchmarks/results"

# What fails says where its output is, and changes nothing.
status=0
said=$(BENCH=3 record) || status=$?
((status == 3)) || fail "record of what fails: status $status: $said"
contains "$said" "not all was measured; what was printed is in build/record/output"
contains "$(cat "$work/build/record/output")" "linear<float> 2"
contains "$(cat "$page")" old

# Tables are kept where scaling fails.
status=0
said=$(SCALING=3 record) || status=$?
((status == 3)) || fail "record where scaling fails: status $status: $said"
contains "$(cat "$work"/benchmarks/results/*.md)" "linear<float> 2"
lacks "$(cat "$page")" old

said=$(record) || fail "record: $said"
result=$(cat "$work"/benchmarks/results/*.md)
contains "$result" "| flags | -O3 -march=native -std=gnu++20 |"
contains "$result" "- time per token at 4096"
lacks "$result" building
contains "$(cat "$page")" "| nn_layers: linear<float> 2 | 2.00 ms | 10.0 GFLOP/s | 20.0 GFLOP/s | 49 % | 50 % | **no** |"
lacks "$(cat "$page")" "linear<float> 1"
contains "$(cat "$page")" "| 99 % | 100 % | **no** |"
contains "$(cat "$page")" "| 50 % | | |"
lacks "$(cat "$page")" backward_rounded
[[ $(ls "$work/docs/figures/scaling" | paste -sd ' ') == "context.csv context.svg sizes.csv sizes.svg" ]] ||
  fail "figures: $(ls "$work/docs/figures/scaling")"
