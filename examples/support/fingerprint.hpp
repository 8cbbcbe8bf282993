// SPDX-License-Identifier: MIT
#pragma once

#include <infty/io/fingerprint.hpp>

namespace support {

using infty::detail::as_hex;
using infty::detail::Fingerprint;

}  // namespace support
