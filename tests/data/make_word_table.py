#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints include/infty/data/word_table.hpp, from the Unicode database that Python brings; with
--hash, the number that tests/data/compressed_vocabulary.cpp compares all of it by."""
import sys
import unicodedata

SURROGATES, HANGUL = range(0xD800, 0xE000), range(0xAC00, 0xD7A4)


def fold(code):
    """What a reader takes a character for: NFKC, NFD, without accents, in lower case."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", chr(code)))
    return "".join(c.lower() for c in text if unicodedata.category(c) != "Mn")


if sys.argv[1:] == ["--hash"]:
    number = 14695981039346656037  # FNV-1a
    for code in range(0x110000):
        if code not in SURROGATES:
            for byte in (fold(code) + "\n").encode():
                number = (number ^ byte) * 1099511628211 % 2**64
    print(number)
    sys.exit()

# Runs of [first, last, to], the longest that begin at each place; see what is printed below.
folds = {code: [ord(c) for c in fold(code)] for code in range(0x110000)
         if code not in SURROGATES and code not in HANGUL}
folds = {code: to for code, to in folds.items() if to != [code]}
SAME, EACH, SECOND, SEQUENCE = range(4)
runs, pool, code = [], [], 0
while code < 0x110000:
    if code not in folds:
        code += 1
        continue
    to, best = folds[code], (SAME, code)
    for kind, step, far in ((SAME, 1, 0), (EACH, 1, 1), (SECOND, 2, 2)):
        last, wanted = code, to
        while len(to) == 1 or far == 0:
            wanted = [wanted[0] + far] if far else to
            if folds.get(last + step) != wanted or (step == 2 and last + 1 in folds):
                break
            last += step
        if last > best[1]:
            best = kind, last
    kind, last = best
    if len(to) != 1:
        at = next((i for i in range(len(pool)) if pool[i : i + len(to)] == to), len(pool))
        pool += to if at == len(pool) else []
        kind, to = SEQUENCE, [len(to) << 16 | at]
    runs.append(f"{{{code:#x},{last:#x},{kind << 30 | to[0]:#x}}}")
    code = last + 1
assert len(pool) < 1 << 16


def lines(words):
    line = "   "
    for word in words:
        if len(line + word) > 99:
            yield line
            line = "   "
        line += " " + word + ","
    yield line


print(f"""// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// Made by tests/data/make_word_table.py from Unicode {unicodedata.unidata_version}.

namespace infty::detail {{

/// What a reader takes characters for, rising: first and last code point, and kind << 30 | to, where
/// all become `to` (kind 0); the first does, and each (1) or every second one (2) what is as far
/// from it as they are; or (3) all become a sequence: its length << 16 | its place in
/// `word_sequences`. Others stay, but for Hangul.
// clang-format off
inline constexpr std::uint32_t word_runs[][3] = {{""")
print("\n".join(lines(runs)))
print("""};

/// The code points of sequences, which may share some.
inline constexpr std::uint32_t word_sequences[] = {""")
print("\n".join(lines(f"{code:#x}" for code in pool)))
print("""};
// clang-format on

}  // namespace infty::detail""")
