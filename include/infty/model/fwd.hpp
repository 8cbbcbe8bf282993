// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/fwd.hpp>

namespace infty {

struct TransformerConfig;

template <class... L>
class Layers;
template <class Mixer>
class TransformerLM;

}  // namespace infty
