// SPDX-License-Identifier: MIT
#include <string>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_delta.hpp"

namespace delta_golden {

const std::string files = std::string(INFTY_TEST_DATA) + "/golden/";

template <class T>
infty::tests::Comparison replay(const std::string& path) {
  infty::tests::GoldenCase file(path);
  return infty::tests::replay_delta<T, infty::EigenBackend>(file);
}

}  // namespace delta_golden

TEST_CASE("delta rule: the authors' numbers, every value and gradient, by place and by chunk") {
  const std::string name =
      GENERATE("delta_gated", "delta_plain", "delta_linear", "delta_linear_normalized",
               "delta_layer", "delta_layer_grouped");
  const auto result = delta_golden::replay<double>(delta_golden::files + name + ".safetensors");
  CAPTURE(name, result.worst_name, result.worst);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared >= 20);
  // In float, the sums of some dozen numbers.
  CHECK(delta_golden::replay<float>(delta_golden::files + name + ".safetensors").worst <= 2e-5);
}

TEST_CASE("delta rule: a changed number of a case is found") {
  const infty::tests::TemporaryFolder own;
  const auto path = own / "changed.safetensors";
  std::string bytes = infty::tests::read_text(delta_golden::files + "delta_layer.safetensors");
  bytes[bytes.size() - 2] ^= 0x10;  // the exponent of the last number of a recorded tensor
  infty::tests::write_text(path, bytes);
  CHECK(delta_golden::replay<double>(path.string()).worst > 1e-3);
}
