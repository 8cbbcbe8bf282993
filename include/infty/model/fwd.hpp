// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/fwd.hpp>

namespace infty {

struct TransformerConfig;

template <class... L>
class Layers;
template <class Mixer>
class TransformerLM;

template <class T, class Backend = EigenBackend>
class AnyTransformerLM;
template <class T, class Backend = EigenBackend>
struct MemoryEncoderLayer;
template <class Embedding, class Body, class Head>
class LanguageModel;

}  // namespace infty
