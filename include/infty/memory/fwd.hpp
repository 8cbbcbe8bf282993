// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/fwd.hpp>

namespace infty {

struct GaussianDensity;
template <class T>
class GaussianBasis;
struct LongTermConfig;

template <class T, class Backend = EigenBackend>
struct LongTermState;
template <class T, class Density = GaussianDensity, class Basis = GaussianBasis<T>,
          class Backend = EigenBackend>
class LongTermMemory;

template <class T, class Backend = EigenBackend>
class Fifo;

template <class T, class Backend = EigenBackend>
struct ShortTermState;
template <class T, class Backend = EigenBackend>
class ShortTermMemory;

template <class T, class Backend = EigenBackend>
class NoMemory;

template <class T, class Backend = EigenBackend>
struct CompressiveState;
template <class T, class Backend = EigenBackend>
class CompressiveMemory;

template <class T, class Backend = EigenBackend>
struct LinearAttentionState;
template <class T, class Backend = EigenBackend>
class LinearAttention;
template <class T, class Backend = EigenBackend>
struct GatedDeltaNetState;
template <class T, class Backend = EigenBackend>
class GatedDeltaNet;
template <class T, class Backend = EigenBackend>
class DeltaNet;

template <class T, class Backend = EigenBackend>
struct LaMemoState;
template <class T, class Backend = EigenBackend>
class LaMemo;

template <class T, class Backend = EigenBackend>
class KeyValueStore;
template <class T, class Backend = EigenBackend>
struct StoredEntries;
template <class T, class Backend = EigenBackend>
struct MemorizingState;
template <class T, class Backend = EigenBackend>
class MemorizingAttention;

template <class T, class Backend = EigenBackend>
struct TitansState;
template <class T, class Backend = EigenBackend>
class TitansMemory;
template <class T, class Backend = EigenBackend>
class Titans;

template <class T, class Backend = EigenBackend>
struct EngramState;
template <class T, class Backend = EigenBackend>
class Engram;

}  // namespace infty
