// SPDX-License-Identifier: MIT
#pragma once

// What `infty::compiled` has of models: see eigen/compiled.hpp.

#include <infty/memory/compiled.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/compiled.hpp>
#include <infty/train/compiled.hpp>

namespace infty::detail {

template <class T>
using CompiledModel = TransformerLM<InftyMemory<T>>;
template <class T>
using CompiledBody = Layers<Block<InftyMemory<T>>>;

}  // namespace infty::detail

/// The ∞-former, forward and in training.
#define INFTY_COMPILED_MODEL(how, T)                                                               \
  how class ShortTermMemory<T>;                                                                    \
  how class WithMemory<ShortTermMemory<T>, LongTermMemory<T>>;                                     \
  how class AdaptiveEmbedding<T>;                                                                  \
  how class AdaptiveSoftmax<T>;                                                                    \
  how class Layers<Block<InftyMemory<T>>>;                                                         \
  how Variable<T> run_layer(const detail::CompiledBody<T>&, StateOf<detail::CompiledBody<T>>&,     \
                            const Variable<T>&, Pass<T>&);                                         \
  how StateOf<detail::CompiledBody<T>> make_state(const detail::CompiledBody<T>&, Index, Index);   \
  how Index detail::checked_rows(const char*, const detail::CompiledModel<T>::State&);             \
  how class TransformerLM<InftyMemory<T>>;                                                         \
  how std::vector<NamedParameter<T>> named_parameters<T, EigenBackend>(detail::CompiledModel<T>&); \
  how Variable<T> loss_named(const Pass<T>&, std::string_view);                                    \
  how Variable<T> regularised(const Variable<T>&, const Pass<T>&,                                  \
                              std::initializer_list<LossWeight>);

#if defined(INFTY_COMPILED)
namespace infty {
INFTY_COMPILED_MODEL(extern template, float)
INFTY_COMPILED_MODEL(extern template, double)
}  // namespace infty
#endif
