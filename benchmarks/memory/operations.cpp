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

/// Made when the first operation is run.
struct Inputs {
  V x = some({batch, length, width}), in_heads = some({batch, length, heads, head_dim});
  V gain = some({width}), taps = some({width, 4}), before = some({batch, 3, width});
  V a = some({batch, length, 3 * width}), b = some({batch, length, 3 * width});
  V groups = some({batch * length / 4, 4, width});
  infty::Tensor<float> turns = infty::rotary_table<float>(length, head_dim);
};
const Inputs& in() {
  static const Inputs all;
  return all;
}

struct Operation {
  std::string name;
  std::function<V()> compute;
  double vectors = 1;  ///< of the width that it reads for each that it is given
  double read() const { return vectors * static_cast<double>(batch * length * width); }
};

std::vector<Operation> operations() {
  return {{"gelu", [] { return infty::gelu(in().x); }},
          {"silu", [] { return infty::silu(in().x); }},
          {"elu_plus_one", [] { return infty::elu_plus_one(in().x); }},
          {"softmax", [] { return infty::softmax(in().x); }},
          {"transpose", [] { return infty::transpose(in().in_heads, 1, 2); }},
          {"rms_norm", [] { return infty::rms_norm(in().x, in().gain); }},
          {"unit_vectors", [] { return infty::unit_vectors(in().x, head_dim); }},
          {"rotary", [] { return infty::rotary(in().x, heads, in().turns); }},
          {"short_convolution",
           [] { return infty::short_convolution(in().x, in().before, in().taps); }},
          {"gru", [] { return infty::gru(in().a, in().b, in().x); }, 7},
          {"sines_and_cosines", [] { return infty::sines_and_cosines(in().x); }},
          {"dpfp", [] { return infty::dpfp(in().in_heads, 2); }},
          {"mean_groups", [] { return infty::detail::mean_groups(in().groups, 4); }},
          {"max_groups", [] { return infty::detail::max_groups(in().groups, 4); }}};
}

void forward(benchmark::State& run, const Operation& operation) {
  const infty::NoGrad off;
  const double written = static_cast<double>(operation.compute().size());
  against_copy(run, sizeof(float) * (operation.read() + written), [&] { operation.compute(); });
}

// The way back reads what went in and the gradient of what came out, and writes one for each input.
void forward_and_backward(benchmark::State& run, const Operation& operation) {
  const double written = static_cast<double>(operation.compute().size());
  against_copy(run, sizeof(float) * (3 * operation.read() + 2 * written), [&] {
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
