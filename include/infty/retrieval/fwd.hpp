// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/fwd.hpp>

namespace infty {

template <class T, class Backend = EigenBackend>
struct Neighbours;
template <class T>
class Datastore;
template <class T, class Backend = EigenBackend, class Stored = T>
class ExactIndex;
template <class T, class Backend = EigenBackend>
struct Retrieved;
template <class T, class Backend = EigenBackend>
class ContinuousCache;

}  // namespace infty
