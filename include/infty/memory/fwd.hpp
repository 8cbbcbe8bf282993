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
struct UniformState;
template <class T, class Density = GaussianDensity, class Basis = GaussianBasis<T>,
          class Backend = EigenBackend>
class UniformMemory;
template <class M>
class MixedMemory;

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
class CompressiveCausalAttention;

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

template <class T, class Backend = EigenBackend, class Stored = T>
class KeyValueStore;
template <class T, class Backend = EigenBackend, class Stored = T>
struct StoredEntries;
template <class T, class Backend = EigenBackend, class Stored = T>
struct MemorizingState;
template <class T, class Backend = EigenBackend, class Stored = T>
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

template <class T, class Backend>
struct InfiniState;
template <class T, class Backend = EigenBackend>
class InfiniAttention;

template <class T, class Backend = EigenBackend>
struct MemSizerState;
template <class T, class Backend = EigenBackend>
class MemSizer;
template <class T, class Backend = EigenBackend>
struct MemSizerLayerState;
template <class T, class Backend = EigenBackend>
class MemSizerLayer;

template <class T, class Backend = EigenBackend>
struct ProductKeyReading;
template <class T, class Backend = EigenBackend>
class ProductKeyMemory;

template <class T, class Backend = EigenBackend>
class AssociativeMemory;

template <class T, class Backend = EigenBackend>
class SlotWriter;
template <class T, class Backend = EigenBackend>
class GruSlotWriter;
template <class T, class Backend = EigenBackend>
class JointSlots;

template <class Inner>
class AssociativeLayer;
template <class Inner>
class MemoryTokens;
template <class Inner>
class RecurrentTokens;
template <class Inner>
class TokensBehind;
template <class Inner>
class RenewedPast;
template <class Inner>
class WithEngram;
template <class Inner, class M>
class MemoryInFront;

}  // namespace infty
