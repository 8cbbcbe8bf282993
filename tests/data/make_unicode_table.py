#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints include/infty/data/unicode_table.hpp, from the Unicode database that Python brings."""
import unicodedata

# The property White_Space (PropList.txt), which unicodedata does not have.
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
               0x2028, 0x2029, 0x202F, 0x205F, 0x3000}


def kind(code):
    if code in WHITE_SPACE:
        return 3
    return {"L": 1, "N": 2}.get(unicodedata.category(chr(code))[0], 0)


borders, before = [], -1
for code in range(0x110000):
    now = kind(code)
    if now != before:
        borders.append(code << 2 | now)
    before = now

lines, line = [], "   "
for border in borders:
    word = f" {border:#x},"
    if len(line + word) > 100:
        lines.append(line)
        line = "   "
    line += word
lines.append(line)
print(f"""// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// Made by tests/data/make_unicode_table.py from Unicode {unicodedata.unidata_version}.

namespace infty::detail {{

/// Where the class of code points changes, rising: 4 * first code point + class; 0 is for others, 1
/// for letters (general category L), 2 for numbers (N), 3 for white space (White_Space).
// clang-format off
inline constexpr std::uint32_t unicode_borders[] = {{""")
print("\n".join(lines))
print("""};
// clang-format on

}  // namespace infty::detail""")
