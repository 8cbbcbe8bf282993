// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <infty/core/checked.hpp>
#include <infty/io/settings.hpp>
#include <infty/retrieval/index.hpp>

namespace infty {

/// How keys are searched.
enum class IndexKind {
  exact,  ///< `ExactIndex`
  flat,   ///< FAISS: every key, too
  ivf,    ///< FAISS: the keys of the lists whose centroids are nearest (Sivic and Zisserman 2003)
  ivfpq   ///< FAISS: the same of compressed keys (Jégou et al. 2011), as kNN-LM searches
};

/// The names of kinds in files, options and messages.
constexpr std::array<std::string_view, 4> names_of(IndexKind) {
  return {"exact", "flat", "ivf", "ivfpq"};
}

/// Constants of an index. P is kNN-LM's authors' program, for 103 million keys of 1,024 numbers.
struct IndexConfig {
  IndexKind kind = IndexKind::exact;               ///< which index
  SearchMetric metric = SearchMetric::squared_l2;  ///< P; SPALM: inner_product
  Index lists = 0;        ///< of ivf and ivfpq (P: 4,096); 0: 4 √n for n keys
  Index probes = 32;      ///< lists that a query looks at (P)
  Index code = 0;         ///< bytes of a compressed key, a divisor of D (P: 64); 0: up to D / 4
  Index sample = 0;       ///< keys to learn lists and codes from (P: 1,000,000); 0: 64 a list
  bool recompute = true;  ///< scores from the stored keys, not from compressed ones (P: either)
  Index seed = 1;         ///< of the sample, and of the clusters' beginning

  /// Lists for n keys: no more than there are keys.
  Index lists_for(Index n) const {
    const auto root = static_cast<Index>(4 * std::sqrt(static_cast<double>(n)));
    return std::clamp<Index>(lists > 0 ? lists : root, 1, std::max<Index>(1, n));
  }
  /// Bytes of a compressed key of `dim` numbers.
  Index code_for(Index dim) const {
    if (code > 0) return code;
    Index bytes = std::max<Index>(1, dim / 4);
    while (dim % bytes != 0) --bytes;
    return bytes;
  }
  /// Keys of n to learn from, one for each list and each of 256 codes at least.
  Index sample_for(Index n) const {
    const Index least = std::max<Index>(lists_for(n), 256);
    return (std::min)(n, sample > 0 ? (std::max)(sample, least) : 64 * least);
  }

  /// Checks all constants for keys of `dim` numbers.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate(Index dim) const {
    const char* const op = "IndexConfig";
    constexpr Index most = Index{1} << 30;  // FAISS counts in 32 bits
    const auto in_range = [&](const char* name, Index value, Index least) {
      require(value >= least && value <= most, op, name, " is ", value, ": it must be ", least,
              " to ", most);
    };
    in_range("lists", lists, 0);
    in_range("probes", probes, 1);
    in_range("sample", sample, 0);
    in_range("seed", seed, 0);
    require(code >= 0 && code <= dim && (code == 0 || dim % code == 0), op, "code is ", code,
            ": it must be 0, or divide the keys' ", dim, " numbers");
  }
};

/// Names every setting of an `IndexConfig`.
template <class See>
void describe(IndexConfig& c, See&& see) {
  see("kind", c.kind, "how keys are searched: exact, or by FAISS flat, ivf or ivfpq");
  see("metric", c.metric, "what makes a key near: squared_l2 or inner_product");
  see("lists", c.lists, "lists that ivf and ivfpq divide the keys into; 0: 4 sqrt(keys)");
  see("probes", c.probes, "lists that a query looks at");
  see("code", c.code, "bytes of a key in ivfpq, a divisor of its numbers; 0: up to a quarter");
  see("sample", c.sample, "keys to learn lists and codes from; 0: 64 a list");
  see("recompute", c.recompute, "scores from the stored keys, not from compressed ones");
  see("seed", c.seed, "of the sample, and of the clusters' beginning");
}

/// Refuses a kind of index that needs FAISS, in a program that was built without it.
/// @throws infty::ValueError that says what to install
[[noreturn]] inline void raise_without_faiss(std::string_view op, IndexKind kind) {
  raise<ValueError>(op, "index ", name_of(kind),
                    " needs FAISS, and this program was built without it: apt install "
                    "libfaiss-dev, and build it again; index exact needs nothing");
}

}  // namespace infty
