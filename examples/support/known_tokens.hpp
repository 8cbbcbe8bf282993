// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/data/byte_pair_encoding.hpp>

namespace support {

/// Makes the scores of what is no token -infinity, so that it is never drawn: a model may know more
/// numbers than its encoding has tokens, behind these and between them.
inline void keep_known(const infty::BytePairEncoding& encoding, std::vector<float>& scores) {
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!encoding.has(static_cast<infty::Index>(i))) scores[i] = -infty::math::infinity<float>;
}

}  // namespace support
