// SPDX-License-Identifier: MIT
#pragma once

/// Before a loop over the registers of a lane: the device unrolls it whole, for it cannot compute
/// which register it means. What it is is left to the host's compiler, for which it does nothing.
#if defined(__CUDA_ARCH__)
#define INFTY_OVER_REGISTERS _Pragma("unroll")
#else
#define INFTY_OVER_REGISTERS
#endif
