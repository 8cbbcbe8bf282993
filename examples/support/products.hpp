// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>

#include <infty/eigen/pairs.hpp>
#include <infty/eigen/products.hpp>
#include <infty/io/settings.hpp>

// How the models of a program multiply: a setting of whatever trains, for it changes the bits.

namespace support {

/// How this process multiplies, as settings name it: float32, or what INFTY_BF16_PRODUCTS says.
inline std::string products_now() { return std::string(infty::name_of(infty::products())); }

/// Calls see(group, name, field, help, choice...) for the setting.
template <class See>
void each_products_setting(const char* group, std::string& products, See&& see) {
  see(group, "products", products,
      "factors of models' matrix products, on a CPU: as they are, or rounded, and their products "
      "summed in float",
      "float32", "bfloat16");
}

/// Has this process multiply so from now on, and warns where that is slower, for the processor has
/// no instruction for it that is quick. Throws infty::ValueError for another word.
inline void use_products(const std::string& products) {
  infty::set_products(infty::value_of<infty::Products>(products));
  if (infty::products() == infty::Products::bfloat16 &&
      infty::detail::left_layout() == infty::detail::PairLayout::halves)
    std::fprintf(
        stderr,
        "warning: products in bfloat16 take no less time here than float32: the processor has "
        "no quick instruction for them, or the program was not compiled for it "
        "(docs/performance.md)\n");
}

}  // namespace support
