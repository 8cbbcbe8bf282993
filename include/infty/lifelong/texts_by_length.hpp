// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/tensor.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty::detail {

/// Calls f(words [n, L], rows) with the texts of each length L together, the shortest first; rows
/// says which of the texts these n are.
/// @param op    in messages
/// @param what  a text is called there
/// @param tokens_of  tokens_of(i) are the tokens of text i
/// @throws infty::ValueError for a text without tokens
template <class B, class TokensOf, class F>
void each_length(const char* op, const char* what, std::size_t texts, const TokensOf& tokens_of,
                 F&& f) {
  std::map<std::size_t, std::vector<std::size_t>> of_length;
  for (std::size_t i = 0; i < texts; ++i) {
    require(!tokens_of(i).empty(), op, what, ' ', i, " has no tokens");
    of_length[tokens_of(i).size()].push_back(i);
  }
  for (const auto& [length, rows] : of_length) {
    std::vector<Index> tokens;
    for (const std::size_t row : rows) {
      const auto& own = tokens_of(row);
      tokens.insert(tokens.end(), own.begin(), own.end());
    }
    f(Tensor<Index, B>::from(Shape{std::ssize(rows), static_cast<Index>(length)}, tokens), rows);
  }
}

/// What an encoder makes of texts of one length, each read behind a fresh state: [n, L] -> [n, L,
/// d].
/// @param first_only  whether the vector of the first token is wanted alone: then [n, 1, d] where
/// the encoder's last layer can leave the others out
template <class Embedding, class Body, class B>
auto read_texts(const Embedding& embedding, const Body& body, const Tensor<Index, B>& words,
                bool first_only) {
  Pass<typename Body::Scalar, B> pass{.first = answers_first<Body> && first_only ? 1 : 0,
                                      .words = words};
  auto state = make_state(body, words.dim(0));
  return run_layer(body, state, embedding.forward(words, pass), pass);
}

/// What an encoder makes of the first token of each text, [n, d], as a value. @throws as
/// `each_length`, and what the encoder does
template <class Embedding, class Body, class TokensOf>
auto first_vectors(const char* op, const char* what, const Embedding& embedding, const Body& body,
                   std::size_t texts, const TokensOf& tokens_of) {
  using T = typename Body::Scalar;
  using B = typename Body::BackendType;
  const auto guard = no_grad();
  std::vector<T> out;
  Index d = 0;
  each_length<B>(op, what, texts, tokens_of,
                 [&](const Tensor<Index, B>& words, const std::vector<std::size_t>& rows) {
                   const auto first = narrow(read_texts(embedding, body, words, true), 0, 1);
                   const auto all = first.value().to_vector();
                   d = first.dim(2);
                   out.resize(texts * static_cast<std::size_t>(d));
                   for (std::size_t i = 0; i < rows.size(); ++i)
                     std::copy_n(all.begin() + static_cast<Index>(i) * d, d,
                                 out.begin() + static_cast<Index>(rows[i]) * d);
                 });
  return Tensor<T, B>::from(Shape{static_cast<Index>(texts), d}, out);
}

}  // namespace infty::detail
