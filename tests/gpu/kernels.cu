// SPDX-License-Identifier: MIT
// Every tile kernel in float and double, to be compiled and not run: tests/gpu/spills reads what
// ptxas says of their registers.
#include <infty/core/bfloat16.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/thrust/backend.hpp>

namespace {

using namespace infty::detail;
using infty::GaussianBasis;
using infty::GaussianDensity;
using infty::TruncatedParabola;

template <class Kernel>
const void* code() {
  return reinterpret_cast<const void*>(run_blocks<Kernel>);
}

/// What nvcc must compile, since its address is taken.
template <class T>
const void* const kernels[] = {
    code<AttentionForward<T>>(),
    code<AttentionQueryGradient<T>>(),
    code<AttentionKeyGradient<T>>(),
    code<AttentionDistanceGradient<T>>(),
    code<AttentionDistanceGradient<T, ByThreads<T>, true>>(),
    code<RowProducts<T>>(),
    code<ExpectationForward<GaussianDensity, T, GaussianBasis<T>>>(),
    code<ExpectationBackward<GaussianDensity, T, GaussianBasis<T>>>(),
    code<ExpectationForward<TruncatedParabola, T, GaussianBasis<T>>>(),
    code<ExpectationBackward<TruncatedParabola, T, GaussianBasis<T>>>(),
    code<LayerNormForward<T>>(),
    code<LayerNormBackward<T>>(),
    code<ReduceColumns<SumPair<T>, LayerNormTerm<T>, AddGainAndBias<T>>>(),
    code<ReduceColumns<SumPair<T>, LayerNormTerm<T>, KeepPartial<SumPair<T>>>>(),
    code<ReduceColumns<SumPair<T>, ElementAt<SumPair<T>>, AddGainAndBias<T>>>(),
    code<ReduceColumns<T, ElementAt<T>, TiledColumnSums<infty::Cuda>::Add<T>>>(),
    code<ReduceColumns<T, ElementAt<T>, KeepPartial<T>>>(),
    code<NearestTiles<T, T>>(),
    code<NearestTiles<T, infty::BFloat16>>(),
    code<TokenLossesForward<T>>(),
    code<TokenLossesBackward<T>>(),
    code<AddRuns<T>>(),
    code<AdamStep<T>>(),
    code<PieceSquares<T>>(),
    code<SumPieces<T>>(),
    code<ScalePieces<T>>()};

/// Those of them that are for float alone.
const void* const single_kernels[] = {
    code<TensorAttentionForward<InTf32<2>, 32>>(),
    code<TensorAttentionForward<InTf32<2>, 64>>(),
    code<TensorAttentionForward<InTf32<2>, 128>>(),
    code<TensorAttentionForward<InTf32<1>, 32>>(),
    code<TensorAttentionForward<InTf32<1>, 64>>(),
    code<TensorAttentionForward<InTf32<1>, 128>>(),
    code<TensorAttentionForward<InBfloat16, 32>>(),
    code<TensorAttentionForward<InBfloat16, 64>>(),
    code<TensorAttentionForward<InBfloat16, 128>>(),
    code<AttentionQueryGradient<float, ByTensorCores<InTf32<2>>>>(),
    code<AttentionQueryGradient<float, ByTensorCores<InTf32<1>>>>(),
    code<AttentionQueryGradient<float, ByTensorCores<InBfloat16>>>(),
    code<AttentionKeyGradient<float, ByTensorCores<InTf32<2>>>>(),
    code<AttentionKeyGradient<float, ByTensorCores<InTf32<1>>>>(),
    code<AttentionKeyGradient<float, ByTensorCores<InBfloat16>>>(),
    code<AttentionDistanceGradient<float, ByTensorCores<InTf32<2>>>>(),
    code<AttentionDistanceGradient<float, ByTensorCores<InTf32<1>>>>(),
    code<AttentionDistanceGradient<float, ByTensorCores<InBfloat16>>>()};

}  // namespace

const void* const* infty_kernels(bool single) { return single ? kernels<float> : kernels<double>; }
const void* const* infty_single_kernels() { return single_kernels; }
