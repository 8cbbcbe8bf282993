// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/fwd.hpp>

namespace infty {

struct TransformerConfig;

template <class MemoryState>
struct TransformerState;
template <class T, template <class, class> class M = InftyMemory, class Backend = EigenBackend>
class TransformerLM;

}  // namespace infty
