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

echo "all as it should be"
