// SPDX-License-Identifier: MIT
#pragma once

namespace infty {

class Shape;
class Random;
struct EigenBackend;

template <class T, class Backend = EigenBackend>
class Tensor;

}  // namespace infty
