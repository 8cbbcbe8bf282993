// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/messages.hpp>

#include "interrupt.hpp"

namespace support {

/// The signal that came to any of the ranks, the greatest of them; 0 for none.
inline int signal_of_all(infty::AnyCommunicator ranks) {
  const auto all = infty::gather(ranks, InterruptGuard::signal());
  return *std::max_element(all.begin(), all.end());
}

}  // namespace support
