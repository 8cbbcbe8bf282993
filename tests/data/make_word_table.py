#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints include/infty/data/word_table.hpp, from the Unicode database that Python brings; with
--hash, the number that tests/data/compressed_vocabulary.cpp compares all of it by."""
import sys
import unicodedata

SURROGATES, HANGUL = range(0xD800, 0xE000), range(0xAC00, 0xD7A4)


def fold(code):
    """What a reader takes a character for: NFKC, NFD, without marks, in lower case."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", chr(code)))
    return "".join(c.lower() for c in text if unicodedata.category(c)[0] != "M")


if sys.argv[1:] == ["--hash"]:
    number = 14695981039346656037  # FNV-1a
    for code in range(0x110000):
        if code not in SURROGATES:
            for byte in (fold(code) + "\n").encode():
                number = (number ^ byte) * 1099511628211 % 2**64
    print(number)
    sys.exit()

folds = {code: [ord(c) for c in fold(code)] for code in range(0x110000)
         if code not in SURROGATES and code not in HANGUL}
folds = {code: to for code, to in folds.items() if to != [code]}
SAME, EACH, SECOND, SEQUENCE = range(4)
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-"
text, behind, before, code = "", 0, 0, 0


def write(number, signed=False):
    """Digits of five bits, the lowest first, each but the last with 32 added."""
    global text
    if signed:
        number = number << 1 if number >= 0 else ~(number << 1)
    while number >= 32:
        text += DIGITS[(number & 31) + 32]
        number >>= 5
    text += DIGITS[number]


while code < 0x110000:  # the longest run that begins at each place
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
    kind = kind if len(to) == 1 else SEQUENCE
    write(code - behind)
    write((last - code) * 4 + kind)
    if kind == SEQUENCE:
        write(len(to))
    for one in to:
        write(one - before, signed=True)
        before = one
    code = behind = last + 1

print(f"""// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

// Made by tests/data/make_word_table.py from Unicode {unicodedata.unidata_version}.

namespace infty::detail {{

/// The digits of `word_runs`.
inline constexpr std::string_view word_digits =
    "{DIGITS}";

/// What a reader takes characters for, as numbers. A number is written in digits of five bits, the
/// lowest first; 32 is added to all of them but the last. Of each run of code points there is: how
/// far its first is behind the run before, then 4 (last - first) + kind. All become one (kind 0);
/// or the first does, and each (1) or every second one (2) what is as far from it as they are; or
/// all become a sequence (3), whose length follows. Then come the code points that they become,
/// each as its difference d from the one before it in this text, 2 d, or -2 d - 1 if it is
/// negative. Other characters stay, but for Hangul.
// clang-format off
inline constexpr std::string_view word_runs =""")
print("\n".join(f'    "{text[at : at + 94]}"' for at in range(0, len(text), 94)) + ";")
print("""// clang-format on

}  // namespace infty::detail""")
