// SPDX-License-Identifier: MIT
#pragma once

#include <infty/eigen/backend.hpp>

namespace infty::tests {

/// EigenBackend under another name: for what goes from one backend to another.
struct OtherBackend : EigenBackend {};

}  // namespace infty::tests
