// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/fwd.hpp>

namespace infty {

template <class T, class Backend = EigenBackend>
struct Linear;
template <class T, class Backend = EigenBackend>
struct Embedding;
template <class T, class Backend = EigenBackend>
class AdaptiveEmbedding;
template <class T, class Backend = EigenBackend>
class AdaptiveSoftmax;
template <class T, class Backend = EigenBackend>
struct LayerNorm;
template <class T, class Backend = EigenBackend>
struct RMSNorm;
template <class T, class Backend = EigenBackend>
class ShortConvolution;
template <class T, class Backend = EigenBackend>
struct BatchNorm;
template <class T, class Backend = EigenBackend>
struct FeedForward;
template <class T, class Backend = EigenBackend>
struct MultiHeadAttention;
template <class T, class Backend = EigenBackend>
struct RelativeAttention;
template <class T, class Backend = EigenBackend>
struct BucketBias;
template <class T, class Backend = EigenBackend>
struct LinearBias;

template <class T, class Backend = EigenBackend>
struct CausalAttention;
template <class T, class Backend = EigenBackend>
struct SelfAttention;

template <class T, class Backend = EigenBackend>
struct Pass;
template <class T, class Backend = EigenBackend>
class AnyLayer;

}  // namespace infty
