// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <infty/memory/delta_net.hpp>
#include <infty/memory/infini_attention.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/memory/memsizer.hpp>

#include "endurance/family.hpp"

namespace endurance {

namespace {

/// What a float memory answers behind so many vectors, in segments of `length`, over what the same
/// in double does: the largest difference, relative to the largest answer. Vectors have a mean, by
/// which sums grow as fast as they can.
template <class Single, class Double>
double drift(const typename Single::Config& config, Index vectors, Index length) {
  const Single single(config, sizes, Random(1));
  const Double exact(config, sizes, Random(1));
  auto a = single.make_state(1);
  auto b = exact.make_state(1);
  Random random(5);
  double worst = 0;
  for (Index seen = 0; seen < vectors; seen += length) {
    infty::Tensor<float> x({1, length, sizes.model_dim});
    infty::Tensor<double> same(x.shape());
    for (Index i = 0; i < x.size(); ++i) {
      x.data()[i] = static_cast<float>(1 + .5 * random.normal());
      same.data()[i] = static_cast<double>(x.data()[i]);
    }
    const bool last = seen + length >= vectors;
    infty::Pass<float> pass{.answer = last};
    infty::Pass<double> exact_pass{.answer = last};
    const V y = single.forward(a, V(x), pass);
    const auto z = exact.forward(b, infty::Variable<double>(same), exact_pass);
    if (!last) continue;
    double largest = 0;
    for (Index i = 0; i < y.size(); ++i) {
      const double wanted = z.value().data()[i];
      worst = std::max(worst, std::fabs(static_cast<double>(y.value().data()[i]) - wanted));
      largest = std::max(largest, std::fabs(wanted));
    }
    worst = std::isfinite(worst) ? worst / largest : 1;
  }
  return worst;
}

template <template <class, class> class Mixer, class Config>
int tried(const char* name, const Config& config, Index vectors, double allowed) {
  using B = infty::EigenBackend;
  int failures = 0;
  for (const Index length : {Index{1}, Index{64}}) {
    const double off = drift<Mixer<float, B>, Mixer<double, B>>(config, vectors, length);
    if (!(off <= allowed)) ++failures;
    std::printf("%s%-30s float is off by %.1e behind %td vectors in segments of %td\n",
                off <= allowed ? "" : "FAILED: ", name, off, vectors, length);
  }
  return failures;
}

}  // namespace

int try_sums(Index vectors) {
  // A sum of n numbers of one sign is off by n / 2 roundings at the worst, and by their root as a
  // rule; what is divided by the sum of the keys loses most of that again.
  const double n = static_cast<double>(vectors), rounding = 6e-8;
  const double rule = 1e-5 + 2 * rounding * std::sqrt(n), worst = 1e-5 + rounding * n / 2;
  return tried<infty::LinearAttention>("linear", infty::LinearAttentionConfig{}, vectors, rule) +
         tried<infty::InfiniAttention>("Infini-attention", infty::InfiniConfig{.segment = 64},
                                       vectors, rule) +
         tried<infty::DeltaNet>("DeltaNet", infty::DeltaNetConfig{}, vectors, rule) +
         tried<infty::MemSizer>("MemSizer", infty::MemSizerConfig{.slots = 8}, vectors, worst);
}

}  // namespace endurance
