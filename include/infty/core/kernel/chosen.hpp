// SPDX-License-Identifier: MIT
#pragma once

#include <infty/version.hpp>  // says that C++20 is needed

namespace infty::detail {

/// Whether the backend of a composition brings a kernel for it. A composition over backend B says
/// by which name it asks for one:
///
///     template <class Own = B>
///     using Kernel = typename Own::FusedLayerNorm;
template <class Composition>
concept HasKernel = requires { typename Composition::template Kernel<>; };

template <class Composition>
struct Chosen {
  using type = Composition;
};
template <HasKernel Composition>
struct Chosen<Composition> {
  using type = typename Composition::template Kernel<>;
};

/// The backend's kernel if it brings one, the composition otherwise.
template <class Composition>
using chosen_t = typename Chosen<Composition>::type;

}  // namespace infty::detail
