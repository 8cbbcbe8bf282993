// SPDX-License-Identifier: MIT
#pragma once

#include <iterator>

#include <infty/core/error.hpp>
#include <infty/core/state.hpp>
#include <infty/core/tensor.hpp>
#include <infty/data/batch_stream.hpp>

namespace infty {

/// What a batch's rows read, [B, L]. @throws infty::ShapeError unless that is how many there are
template <class B = EigenBackend>
Tensor<Index, B> input_tokens(const TextBatch& batch) {
  return Tensor<Index, B>::from({batch.batch, batch.length}, batch.inputs);
}

/// What comes behind each of them, [B, L], or `ignore_index`. @throws infty::ShapeError likewise
template <class B = EigenBackend>
Tensor<Index, B> target_tokens(const TextBatch& batch) {
  return Tensor<Index, B>::from({batch.batch, batch.length}, batch.targets);
}

/// The tokens that were looked up for each of them, [B, L, k], or none. @throws infty::ShapeError
/// unless every place has as many
template <class B = EigenBackend>
Tensor<Index, B> retrieved_tokens(const TextBatch& batch) {
  const Index places = batch.batch * batch.length, all = std::ssize(batch.retrieved);
  if (all == 0) return {};
  require<ShapeError>(places > 0 && all % places == 0, "retrieved_tokens", all,
                      " tokens were looked up for ", places, " places: each must have as many");
  return Tensor<Index, B>::from({batch.batch, batch.length, all / places}, batch.retrieved);
}

/// Makes the rows of a model's state fresh whose memory is not to know what was before this batch;
/// their random numbers are those of the rows' places among all, also in a part of a batch.
/// @throws as `reset_row`
template <class Model, class State>
void reset_rows(const Model& model, State& state, const TextBatch& batch) {
  if (static_cast<Index>(batch.reset.size()) == batch.batch)
    state = model.make_state(batch.batch, batch.first_row);
  else
    for (const Index row : batch.reset) reset_row(state, row);
}

}  // namespace infty
