// SPDX-License-Identifier: MIT
// What somebody pastes below the single header: a long-term memory that is written and read. It is
// compiled with nothing but Eigen beside that header, and linked with single_header_too.cpp.
#include <iostream>

#include "infty.hpp"

float norm_in_another_file(const infty::Tensor<float>& tensor);

namespace {

bool check(bool holds, const char* what) {
  if (!holds) std::cerr << "FAILED: " << what << '\n';
  return holds;
}

}  // namespace

int main() {
  infty::LongTermMemory<float> memory(
      {.model_dim = 16, .heads = 2, .basis = 32, .widths = {.01, .05}}, infty::Random(1));
  auto state = memory.make_state(1);
  infty::Random random(2);
  infty::Tensor<float> segment({1, 64, 16}), queries({1, 8, 16});
  fill_normal(queries, 0, 1, random);
  for (int i = 0; i < 3; ++i) {
    fill_normal(segment, 0, 1, random);
    memory.write(state, segment);
  }
  const auto context = memory.read(state, queries);
  const float norm = norm_in_another_file(context.value());
  std::cout << "infty " << infty::version << ": " << state.written[0] << " vectors read as "
            << context.shape() << ", norm " << norm << '\n';

  bool all = check(infty::version == INFTY_EXPECTED_VERSION, "the version is the project's");
  all &= check(state.written[0] == 192, "three writes of 64 vectors are remembered");
  all &= check(context.shape() == infty::Shape{1, 8, 16}, "an answer for each query");
  all &= check(norm > 0 && norm < 100, "the answers are numbers, and not all zero");
  return all ? 0 : 1;
}
