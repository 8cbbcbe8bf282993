// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include <infty/core/config.hpp>

namespace infty {

/// How EigenBackend multiplies matrices of floats where layers map vectors (`Matmul::roundable`),
/// and what its kernels of attention and of long-term memories' reads multiply.
enum class Products {
  full,      ///< factors as they are
  bfloat16,  ///< factors rounded to bfloat16, products summed in float
};
/// The names of ways to multiply.
constexpr std::array<std::string_view, 2> names_of(Products) { return {"float32", "bfloat16"}; }

namespace detail {

inline std::atomic<Products>& products_setting() {
  static std::atomic<Products> setting{[] {
    const char* const asked = std::getenv("INFTY_BF16_PRODUCTS");
    return asked && std::string_view(asked) == "1" ? Products::bfloat16 : Products::full;
  }()};
  return setting;
}

}  // namespace detail

/// Returns how they are multiplied; until set, in full, or in bfloat16 if the environment has
/// INFTY_BF16_PRODUCTS=1.
inline Products products() { return detail::products_setting().load(std::memory_order_relaxed); }

/// Sets how they are multiplied from now on, in all threads. A training's backward should be as its
/// forward was. Products of infty's own (eigen/gemm.hpp) do not depend on the number of threads or
/// rows in either way. A processor without an instruction for bfloat16, or with a slow one,
/// computes the same bits by floats, but for sums within a rounding of the least normal number, for
/// products that overflow or lie below that where it has no fused multiply-adds, and, where it is
/// no x86-64, for whatever lies below that. One with registers for tiles (AMX), in a program for
/// AVX-512 on Linux, adds up 16 pairs at a time, to bits of its own, unless the environment has
/// INFTY_AMX=0.
inline void set_products(Products how) {
  detail::products_setting().store(how, std::memory_order_relaxed);
}

/// Sets how they are multiplied for as long as it lives, in all threads: scopes of two threads that
/// overlap leave what the last one to end had found.
class ProductsScope {
 public:
  /// Sets how they are multiplied.
  explicit ProductsScope(Products how) : before_(products()) { set_products(how); }
  ~ProductsScope() { set_products(before_); }
  ProductsScope(const ProductsScope&) = delete;
  ProductsScope& operator=(const ProductsScope&) = delete;

 private:
  Products before_;
};

}  // namespace infty
