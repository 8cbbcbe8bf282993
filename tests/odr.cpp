// SPDX-License-Identifier: MIT
// Linked into every test program beside its own includes: a definition that lacks `inline` is then
// defined twice, and the program does not link.
#include <infty/infty.hpp>
