// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/fwd.hpp>

namespace infty {

template <class T, class Backend = EigenBackend>
struct NamedParameter;
template <class T, class Backend = EigenBackend>
class Adam;

}  // namespace infty
