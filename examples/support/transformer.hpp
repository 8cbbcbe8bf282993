// SPDX-License-Identifier: MIT
#pragma once

#include <iterator>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/model/transformer_config.hpp>

#include "settings.hpp"

namespace support {

/// Calls see(group, name, field, help) for the settings of a transformer that all programs have.
template <class See>
void each_transformer_setting(const char* group, infty::TransformerConfig& model, See&& see) {
  each_chosen(group, model,
              {{"model_dim", "width"},
               {"layers"},
               {"heads"},
               {"feed_forward", "feed-forward"},
               {"pre_norm", "pre-norm"}},
              see);
}

/// Throws infty::ValueError that names the option where the sizes do not fit.
/// @param head_dim  whether the program has the option --head-dim
inline void check_transformer(const char* program, const infty::TransformerConfig& model,
                              bool head_dim, const char* heads_option = "--heads") {
  infty::require(model.model_dim % 2 == 0, program, "--width is ", model.model_dim,
                 ": it must be even, for the encoding of distances");
  infty::require(model.head_dim > 0 || model.model_dim % model.heads == 0, program, heads_option,
                 " is ", model.heads, ": it must divide --width = ", model.model_dim,
                 head_dim ? ", or --head-dim must be given" : "");
}

/// Throws infty::ValueError unless there are as many widths of basis functions as there may be, and
/// as many functions, `basis`, of each. `option` is what says how many.
inline void check_basis(const char* program, const char* option, infty::Index basis,
                        const std::vector<double>& widths) {
  infty::require(!widths.empty() && widths.size() <= 8, program, "--widths has ", widths.size(),
                 " elements: it must have 1 to 8");
  infty::require(basis >= 1 && basis % std::ssize(widths) == 0, program, option, " is ", basis,
                 ": it must be a positive multiple of the number of --widths, ", widths.size());
}

}  // namespace support
