// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/lifelong/episodic_memory.hpp>

namespace infty::tests::episodes {

/// Examples first, ..., first + n - 1 of a stream whose keys are their numbers, a few to each key.
inline std::vector<Example> stream(Index first, Index n) {
  std::vector<Example> out;
  for (Index i = first; i < first + n; ++i) out.push_back({{i, i + 1}, {i % 3}});
  return out;
}

/// The key of example i: two numbers of a walk that comes back.
template <class T>
std::vector<T> key(Index i) {
  return {static_cast<T>(i * 37 % 101), static_cast<T>(i * 11 % 13)};
}

template <class T, class B>
Tensor<T, B> keys(Index first, Index n) {
  std::vector<T> out;
  for (Index i = first; i < first + n; ++i)
    for (const T x : key<T>(i)) out.push_back(x);
  return Tensor<T, B>::from(Shape{n, 2}, out);
}

template <class T, class B>
void offer(EpisodicMemory<T, B>& memory, Index first, Index n) {
  memory.write(keys<T, B>(first, n), stream(first, n));
}

/// The first tokens of all that is held: which examples of the stream these are.
template <class T, class B>
std::vector<Index> held(const EpisodicMemory<T, B>& memory) {
  std::vector<Index> out;
  for (Index i = 0; i < memory.size(); ++i) out.push_back(memory.example(i).tokens.front());
  return out;
}

using Memory = EpisodicMemory<float>;
using Keys = Tensor<float, EigenBackend>;

}  // namespace infty::tests::episodes
