// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/fwd.hpp>

namespace infty {

struct TransformerConfig;

template <class T, class Backend = EigenBackend>
struct TransformerState;
template <class T, class Density = GaussianDensity, class Backend = EigenBackend>
class TransformerLM;

}  // namespace infty
