// SPDX-License-Identifier: MIT
// Linked into every test program beside its own includes: a definition that lacks `inline` is then
// defined twice, and the program does not link. The version comes first, as it may in programs: no
// local may hide its name.
// clang-format off
#include <infty/version.hpp>
#include <infty/infty.hpp>
