// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/nn/cross_entropy.hpp>

namespace infty {

/// Tokens in their order, and where documents begin in them.
struct TokenStream {
  std::vector<TokenId> tokens;   ///< of all documents, one behind the other
  std::vector<Index> documents;  ///< the first token of each, rising from 0

  /// Adds a document; one without tokens is left out.
  void append(std::span<const TokenId> document) {
    if (document.empty()) return;
    documents.push_back(static_cast<Index>(tokens.size()));
    tokens.insert(tokens.end(), document.begin(), document.end());
  }
};

/// How a stream is cut into batches.
struct BatchConfig {
  Index batch = 1;      ///< rows that are read side by side
  Index segment = 128;  ///< tokens of a row that are read at once
  /// What the first token of the stream is predicted from, and with `reset_documents` that of every
  /// document.
  TokenId start = 0;
  /// Whether a document begins a segment of its own and says that its row is to be reset; what its
  /// last segment lacks is filled up with targets that are ignored.
  bool reset_documents = false;
};

/// One segment of all rows.
struct TextBatch {
  Index batch = 0, length = 0;  ///< rows, and tokens of each
  std::vector<Index> inputs;    ///< (batch, length)
  std::vector<Index> targets;   ///< (batch, length), the tokens behind them, or `ignore_index`
  /// [batch], the number of each row's first target in the stream.
  std::vector<Index> first = {};
  /// (batch, length, k), tokens that were looked up for each place, for a model that attends to
  /// these; mostly empty.
  std::vector<Index> retrieved = {};
  Index predicted = 0;  ///< targets that are not ignored
  /// Rows whose memory is to be fresh before they read this, rising.
  std::vector<Index> reset = {};
  Index first_row = 0;  ///< which row of the stream the first of these is
  Index epoch = 0;      ///< passes over the stream that were complete before this
  bool last = false;    ///< whether this one completes a pass
};

/// Where a `BatchStream` stands: in which pass, and each row's next target.
struct BatchPosition {
  Index epoch = 0;          ///< passes over the stream that are complete
  std::vector<Index> next;  ///< [batch], the number of each row's next target in the stream

  friend bool operator==(const BatchPosition&, const BatchPosition&) = default;
};

/// Cuts a stream of tokens into as many even parts as there are rows, and reads these side by side
/// segment by segment: each row of a batch goes on where it ended in the one before, so that a
/// memory can be carried along. What is the first of a row is predicted from the token before it.
/// Behind the last segment, which may be shorter, comes the first one of the next pass.
///
/// @post  in each pass every token of the stream is a target once, and in each row in its order
class BatchStream {
 public:
  /// Stands in front of the stream's first segment.
  /// @param stream  which must outlive this
  /// @throws infty::ValueError for a batch or segment below 1, fewer tokens than rows, or documents
  /// that do not begin with 0 and rise
  BatchStream(const TokenStream& stream, const BatchConfig& config)
      : stream_(&stream), config_(config) {
    require_at_least("BatchStream", "batch", config.batch, 1);
    require_at_least("BatchStream", "segment", config.segment, 1);
    require(size() >= config.batch, "BatchStream", "there are ", size(), " tokens for ",
            config.batch, " rows: each needs one");
    const auto& documents = stream.documents;
    require(!documents.empty() && documents.front() == 0, "BatchStream",
            "the first document does not begin at 0");
    for (std::size_t i = 1; i < documents.size(); ++i)
      require(documents[i - 1] < documents[i] && documents[i] < size(), "BatchStream", "document ",
              i, " begins at ", documents[i], ": it must be behind ", documents[i - 1],
              " and below ", size());
    rewind();
  }

  /// The constants as given.
  const BatchConfig& config() const { return config_; }

  /// Reads the next segment of all rows.
  TextBatch next() {
    TextBatch out = read(0, config_.batch);
    skip();
    return out;
  }

  /// Reads the next segment of `count` rows from `first` on, as long as the longest of these, and
  /// stays where it is: for those who share the rows of a batch out. It reads no other rows'
  /// tokens.
  /// @throws infty::ValueError unless there are such rows
  TextBatch read(Index first, Index count) const {
    require(0 <= first && 1 <= count && first <= config_.batch - count, "BatchStream::read", count,
            " rows from ", first, " on: there are ", config_.batch);
    TextBatch out;
    out.batch = count;
    out.first_row = first;
    out.epoch = position_.epoch;
    out.last = is_last();
    std::vector<Index> lengths;
    for (Index row = first; row < first + count; ++row) {
      out.first.push_back(next_of(row));
      lengths.push_back(length_of(row, next_of(row)));
      out.length = (std::max)(out.length, lengths.back());
    }
    const auto all = static_cast<std::size_t>(count * out.length);
    out.inputs.reserve(all);
    out.targets.reserve(all);
    for (Index row = 0; row < count; ++row) {
      const Index next = out.first[static_cast<std::size_t>(row)];
      const Index length = lengths[static_cast<std::size_t>(row)];
      if (length > 0 && begins(first + row, next)) out.reset.push_back(row);
      const bool starts = length > 0 && is_start(next);  // others lie within a document
      for (Index i = 0; i < out.length; ++i) {
        const bool there = i < length && !(i == 0 && starts);
        out.inputs.push_back(there ? token(next + i - 1) : config_.start);
        out.targets.push_back(i < length ? token(next + i) : ignore_index);
      }
      out.predicted += length;
    }
    return out;
  }

  /// Goes on behind the next segment of all rows.
  void skip() {
    const bool last = is_last();
    for (Index row = 0; row < config_.batch; ++row)
      position_.next[static_cast<std::size_t>(row)] += length_of(row, next_of(row));
    if (!last) return;
    ++position_.epoch;
    rewind();
  }

  /// Counts the targets of the next segment of all rows.
  Index predicted() const {
    Index count = 0;
    for (Index row = 0; row < config_.batch; ++row) count += length_of(row, next_of(row));
    return count;
  }

  /// Counts the batches in a pass.
  Index batches_per_epoch() const {
    Index most = 0;
    for (Index row = 0; row < config_.batch; ++row) {
      Index count = 0;
      for (Index next = begin_of(row); next < end_of(row); ++count) next += length_of(row, next);
      most = (std::max)(most, count);
    }
    return most;
  }

  /// Returns where it stands.
  const BatchPosition& position() const { return position_; }

  /// Goes where a stream of the same tokens with the same number of rows stood: what comes next is
  /// what would have come there. @throws infty::ValueError for a place that is none of this
  /// stream's; then it stands where it stood
  void seek(BatchPosition position) {
    require(position.epoch >= 0 && position.epoch <= Index{1} << 62, "BatchStream::seek",
            "the position is of epoch ", position.epoch, ": it must lie in [0, 2^62]");
    require(static_cast<Index>(position.next.size()) == config_.batch, "BatchStream::seek",
            "the position is of ", position.next.size(), " rows: there are ", config_.batch);
    bool any_left = false;
    for (Index row = 0; row < config_.batch; ++row) {
      const Index next = position.next[static_cast<std::size_t>(row)];
      require(begin_of(row) <= next && next <= end_of(row), "BatchStream::seek", "row ", row,
              " is at ", next, ": it must lie in [", begin_of(row), ", ", end_of(row), "]");
      any_left = any_left || next < end_of(row);
    }
    require(any_left, "BatchStream::seek", "all rows are at their ends");
    position_ = std::move(position);
  }

 private:
  Index size() const { return static_cast<Index>(stream_->tokens.size()); }
  Index next_of(Index row) const {
    require(row < std::ssize(position_.next), "BatchStream", "it was moved from");
    return position_.next[static_cast<std::size_t>(row)];
  }
  Index token(Index at) const { return stream_->tokens[static_cast<std::size_t>(at)]; }

  // Parts differ by one token at most; the longer ones come first.
  Index begin_of(Index row) const {
    return size() / config_.batch * row + (std::min)(row, size() % config_.batch);
  }
  Index end_of(Index row) const { return begin_of(row + 1); }

  bool is_document(Index at) const {
    return std::binary_search(stream_->documents.begin(), stream_->documents.end(), at);
  }
  bool is_start(Index at) const { return at == 0 || (config_.reset_documents && is_document(at)); }
  bool begins(Index row, Index at) const {
    return at == begin_of(row) || (config_.reset_documents && is_document(at));
  }

  /// Tokens that a row reads at once from `next` on.
  Index length_of(Index row, Index next) const {
    Index end = next + (std::min)(config_.segment, end_of(row) - next);
    if (config_.reset_documents) {
      const auto& documents = stream_->documents;
      const auto border = std::upper_bound(documents.begin(), documents.end(), next);
      if (border != documents.end()) end = (std::min)(end, *border);
    }
    return end - next;
  }

  /// Whether the next segment completes a pass.
  bool is_last() const {
    for (Index row = 0; row < config_.batch; ++row)
      if (next_of(row) + length_of(row, next_of(row)) != end_of(row)) return false;
    return true;
  }

  void rewind() {
    position_.next.clear();
    for (Index row = 0; row < config_.batch; ++row) position_.next.push_back(begin_of(row));
  }

  const TokenStream* stream_;
  BatchConfig config_;
  BatchPosition position_;
};

}  // namespace infty
