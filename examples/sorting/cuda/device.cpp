// SPDX-License-Identifier: MIT
#include <infty/thrust/context.hpp>

#include "../backends.hpp"

std::string sorting::use_gpu(int number) {
  const std::string reason = infty::gpu::why_unusable();
  infty::require<infty::DeviceError>(reason.empty(), "sorting", "--backend cuda needs a GPU, and ",
                                     reason, "; --backend eigen needs none");
  infty::gpu::set_device(number);
  return infty::gpu::description();
}
