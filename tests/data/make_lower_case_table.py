#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints include/infty/data/lower_case_table.hpp, from the Unicode database that Python brings; with
--hash what tests/data/lower_case.cpp compares with."""
import sys
import unicodedata

if sys.argv[1:] == ["--hash"]:
    value = 14695981039346656037
    for code in range(0x110000):
        text = chr(code)
        if 0xD800 <= code < 0xE000 or text.lower() == text:
            continue
        for byte in f"{text}>{text.lower()}\n".encode():
            value = (value ^ byte) * 1099511628211 % 2**64
    print(value)
    sys.exit()

# Runs of (first, last, step, what is added); U+0130 alone becomes two characters.
runs = []
for code in range(0x110000):
    lower = chr(code).lower()
    if lower == chr(code) or len(lower) != 1:
        assert len(lower) == 1 or code == 0x130
        continue
    added = ord(lower) - code
    if runs and runs[-1][3] == added and (runs[-1][0] == runs[-1][1] or code - runs[-1][1] == runs[-1][2]) \
            and code - runs[-1][1] <= 2:
        first, last = runs[-1][:2]
        runs[-1] = (first, code, code - last, added)
    else:
        runs.append((code, code, 1, added))

lines, line = [], "   "
for run in runs:
    word = " {%#x, %#x, %d, %d}," % run
    if len(line + word) > 100:
        lines.append(line)
        line = "   "
    line += word
lines.append(line)
print(f"""// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// Made by tests/data/make_lower_case_table.py from Unicode {unicodedata.unidata_version}.

namespace infty::detail {{

/// Code points of one step that become others in lower case by the same difference.
struct LowerCaseRun {{
  std::uint32_t first, last;  ///< code points
  std::uint32_t step;         ///< from one to the next
  std::int32_t added;         ///< to each
}};

/// All that become one other, rising.
// clang-format off
inline constexpr LowerCaseRun lower_case_runs[] = {{""")
print("\n".join(lines))
print("""};
// clang-format on

}  // namespace infty::detail""")
