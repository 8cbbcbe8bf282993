// SPDX-License-Identifier: MIT
#pragma once

// What `infty::compiled` has of layers and their operations: see eigen/compiled.hpp.

#include <infty/autograd/broadcast.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/random.hpp>
#include <infty/eigen/compiled.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/linear_pair.hpp>
#include <infty/nn/plain_attention.hpp>

/// Operations of layers, and what fills their parameters.
#define INFTY_COMPILED_NN(how, T)                                                                 \
  how bool detail::all_finite(const Tensor<T>&);                                                  \
  how void fill_normal(Tensor<T>&, double, double, Random&);                                      \
  how void fill_uniform(Tensor<T>&, double, double, Random&);                                     \
  how Variable<T> add(const Variable<T>&, const Variable<T>&);                                    \
  how Variable<T> multiply(const Variable<T>&, const Variable<T>&);                               \
  how Variable<T> scale(const Variable<T>&, T);                                                   \
  how Variable<T> sum(const Variable<T>&, T);                                                     \
  how Variable<T> matmul(const Variable<T>&, const Variable<T>&);                                 \
  how Variable<T> linear(const Variable<T>&, const Variable<T>&, const Variable<T>&);             \
  how Variable<T> linear_of_concat(const Variable<T>&, const Variable<T>&, const Variable<T>&,    \
                                   const Variable<T>&);                                           \
  how Variable<T> concat(const Variable<T>&, const Variable<T>&);                                 \
  how Variable<T> narrow(const Variable<T>&, Index, Index);                                       \
  how Variable<T> reshape(const Variable<T>&, Shape);                                             \
  how Variable<T> detail::uniform_parameter<T, EigenBackend>(Shape, Index, Random);               \
  how Variable<T> detail::linear_pair(const Variable<T>&, const Variable<T>&, const Variable<T>&, \
                                      const Variable<T>&, const Variable<T>&);                    \
  how Variable<T> linear_relu(const Variable<T>&, const Variable<T>&, const Variable<T>&, double, \
                              Random&);                                                           \
  how Variable<T> dropout(const Variable<T>&, double, Random&);                                   \
  how Variable<T> add_dropped(const Variable<T>&, const Variable<T>&, double, Random&);           \
  how Variable<T> embedding(const Tensor<Index>&, const Variable<T>&, T);                         \
  how Variable<T> layer_norm(const Variable<T>&, const Variable<T>&, const Variable<T>&, T);      \
  how Variable<T> token_losses(const Variable<T>&, const Tensor<Index>&, Index);                  \
  how Variable<T> mean_loss(const Variable<T>&, const Tensor<Index>&, Index);                     \
  how Variable<T> scaled_dot_product_attention(const Variable<T>&, const Variable<T>&,            \
                                               const Variable<T>&,                                \
                                               const PlainAttentionOptions<EigenBackend>&);       \
  how Variable<T> relative_attention(const Variable<T>&, const Variable<T>&, const Variable<T>&,  \
                                     const Variable<T>&, const Variable<T>&, const Variable<T>&,  \
                                     const Tensor<Index>&, Tensor<T>*);

#if defined(INFTY_COMPILED)
namespace infty {
INFTY_COMPILED_NN(extern template, float)
INFTY_COMPILED_NN(extern template, double)
}  // namespace infty
#endif
