// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/recording_scope.hpp>

namespace infty {

/// While it lives, nothing is recorded on this thread, but by a tape that is made within.
class [[nodiscard]] NoGrad {
 public:
  NoGrad() : scope_(nullptr) {}
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  detail::RecordingScope scope_;
};

/// `auto guard = no_grad();` records nothing until the guard's scope ends.
inline NoGrad no_grad() { return NoGrad(); }

}  // namespace infty
