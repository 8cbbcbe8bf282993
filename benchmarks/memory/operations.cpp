// SPDX-License-Identifier: MIT
// Operations that go over their elements once, forward without a tape, and forward and backward: 8
// rows of 1,024 vectors of width 300, of 6 heads where an operation knows heads. What is no copy in
// them are elementary functions; an operation far from both is no vector code.

#include <functional>
#include <string>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/memory/compression.hpp>
#include <infty/memory/ops/dpfp.hpp>
#include <infty/memory/ops/sines_and_cosines.hpp>
#include <infty/nn/gru_cell.hpp>
#include <infty/nn/rms_norm.hpp>
#include <infty/nn/rotary.hpp>
#include <infty/nn/short_convolution.hpp>
#include <infty/nn/unit_vectors.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Shape;

namespace {

using V = infty::Variable<float>;

constexpr Index batch = 8, length = 1024, width = 300, heads = 6, head_dim = width / heads;

V some(Shape shape) { return V(normal<float>(shape), true); }

struct Operation {
  std::string name;
  std::function<V()> compute;
  double read;  ///< elements of what it reads
};

std::vector<Operation> operations() {
  const V x = some({batch, length, width}), in_heads = some({batch, length, heads, head_dim});
  const double all = static_cast<double>(x.size());
  const V gain = some({width});
  const auto turns = infty::rotary_table<float>(length, head_dim);
  const V a = some({batch, length, 3 * width}), b = some({batch, length, 3 * width});
  const V taps = some({width, 4}), before = some({batch, 3, width});
  const V groups = some({batch * length / 4, 4, width});
  return {{"gelu", [=] { return infty::gelu(x); }, all},
          {"silu", [=] { return infty::silu(x); }, all},
          {"elu_plus_one", [=] { return infty::elu_plus_one(x); }, all},
          {"softmax", [=] { return infty::softmax(x); }, all},
          {"transpose", [=] { return infty::transpose(in_heads, 1, 2); }, all},
          {"rms_norm", [=] { return infty::rms_norm(x, gain); }, all},
          {"unit_vectors", [=] { return infty::unit_vectors(x, head_dim); }, all},
          {"rotary", [=] { return infty::rotary(x, heads, turns); }, all},
          {"short_convolution", [=] { return infty::short_convolution(x, before, taps); }, all},
          {"gru", [=] { return infty::gru(a, b, x); }, 7 * all},
          {"sines_and_cosines", [=] { return infty::sines_and_cosines(x); }, all},
          {"dpfp", [=] { return infty::dpfp(in_heads, 2); }, all},
          {"mean_groups", [=] { return infty::detail::mean_groups(groups, 4); }, all},
          {"max_groups", [=] { return infty::detail::max_groups(groups, 4); }, all}};
}

void forward(benchmark::State& run, const Operation& operation) {
  const infty::NoGrad off;
  const double written = static_cast<double>(operation.compute().size());
  against_copy(run, sizeof(float) * (operation.read + written), [&] { operation.compute(); });
}

// The way back reads what went in and the gradient of what came out, and writes one for each input.
void forward_and_backward(benchmark::State& run, const Operation& operation) {
  const double written = static_cast<double>(operation.compute().size());
  against_copy(run, sizeof(float) * (3 * operation.read + 2 * written), [&] {
    infty::Tape tape;
    tape.backward(infty::sum(operation.compute()));
  });
}

const bool registered = [] {
  for (const Operation& operation : operations()) {
    benchmark::RegisterBenchmark(("forward/" + operation.name).c_str(), forward, operation)
        ->UseManualTime();
    benchmark::RegisterBenchmark(("forward_and_backward/" + operation.name).c_str(),
                                 forward_and_backward, operation)
        ->UseManualTime();
  }
  return true;
}();

}  // namespace
