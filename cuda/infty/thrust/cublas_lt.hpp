// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>

#include <cublasLt.h>

#include <infty/core/config.hpp>
#include <infty/thrust/context.hpp>
#include <infty/thrust/dense.hpp>
#include <infty/thrust/device_pool.hpp>

/// Products of cuBLAS that do more than multiply.
namespace infty::gpu::detail {

template <auto destroy>
struct LtDestroy {
  template <class Handle>
  void operator()(Handle* handle) const {
    destroy(handle);
  }
};
template <class Handle, auto destroy>
using LtHandle = std::unique_ptr<std::remove_pointer_t<Handle>, LtDestroy<destroy>>;
using LtOperation = LtHandle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using LtLayout = LtHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using LtPreference = LtHandle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// A matrix of columns that stand one behind the other.
inline LtLayout lt_layout(Index rows, Index columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "cublasLtMatrixLayoutCreate");
  return LtLayout(made);
}

/// What decides how cuBLAS computes a product: sizes, rounding, and at how many bytes w, x, b and
/// y are aligned.
struct BiasedProductKind {
  int device;
  Index rows, out, in;
  cublasComputeType_t compute;
  std::uint32_t of_w, of_x, of_b, of_y;

  friend bool operator<(const BiasedProductKind& a, const BiasedProductKind& b) {
    const auto all = [](const BiasedProductKind& k) {
      return std::tie(k.device, k.rows, k.out, k.in, k.compute, k.of_w, k.of_x, k.of_b, k.of_y);
    };
    return all(a) < all(b);
  }
};

/// How y (rows, out) = x (rows, in) Wᵀ + b is computed: as yᵀ = W xᵀ + b, for cuBLAS knows columns
/// only.
class BiasedProductPlan {
 public:
  /// b is one of the kind's.
  BiasedProductPlan(const BiasedProductKind& kind, const float* b)
      : w_(lt_layout(kind.in, kind.out)),
        x_(lt_layout(kind.in, kind.rows)),
        y_(lt_layout(kind.out, kind.rows)) {
    cublasLtMatmulDesc_t made = nullptr;
    check(cublasLtMatmulDescCreate(&made, kind.compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
    operation_.reset(made);
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, b);  // by which cuBLAS sees how it is aligned
    cublasLtMatmulPreference_t wanted = nullptr;
    check(cublasLtMatmulPreferenceCreate(&wanted), "cublasLtMatmulPreferenceCreate");
    const LtPreference preference(wanted);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(wanted, what, &value, sizeof(value)),
            "cublasLtMatmulPreferenceSetAttribute");
    };
    constexpr std::size_t most_workspace = std::size_t{32} << 20;
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kind.of_w);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kind.of_x);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kind.of_y);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kind.of_y);
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        library(), made, w_.get(), x_.get(), y_.get(), y_.get(), wanted, 1, &chosen_, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return;
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    there_is_one_ = found > 0 && chosen_.state == CUBLAS_STATUS_SUCCESS;
  }

  /// @return  false if cuBLAS has no such product
  bool multiply(const float* x, const float* w, const float* b, float* y) {
    if (!there_is_one_) return false;
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, b);
    const float one = 1, zero = 0;
    const infty::detail::DeviceScratch<char> workspace(chosen_.workspaceSize);
    const cublasStatus_t status = cublasLtMatmul(
        library(), operation_.get(), &one, w, w_.get(), x, x_.get(), &zero, y, y_.get(), y,
        y_.get(), &chosen_.algo, workspace.data(), chosen_.workspaceSize, stream());
    there_is_one_ = status != CUBLAS_STATUS_NOT_SUPPORTED;
    if (there_is_one_) check(status, "cublasLtMatmul");
    return there_is_one_;
  }

 private:
  /// A handle of cuBLAS is one of cublasLt, too.
  static cublasLtHandle_t library() {
    return reinterpret_cast<cublasLtHandle_t>(libraries().blas());
  }
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t what, Value value) {
    check(cublasLtMatmulDescSetAttribute(operation_.get(), what, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  }

  LtOperation operation_;
  LtLayout w_, x_, y_;
  cublasLtMatmulHeuristicResult_t chosen_{};
  bool there_is_one_ = false;
};

/// y (rows, out) = x (rows, in) Wᵀ + b, the bias added before y is written; nothing of it is empty.
/// @return  false if cuBLAS has no such product, and nothing was done
inline bool biased_product(Index rows, Index out, Index in, const float* x, const float* w,
                           const float* b, float* y) {
  const auto alignment = [](const float* address) {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return static_cast<std::uint32_t>(
        std::min<std::uintptr_t>(place & (~place + 1), 256));  // the lowest bit, 256 at most
  };
  const BiasedProductKind kind{
      device(),     rows,         out,          in,          float_compute_type(),
      alignment(w), alignment(x), alignment(b), alignment(y)};
  // Of as many kinds as a model has layers, for some lengths: asking for one takes many times as
  // long as a small product.
  constexpr std::size_t most_plans = 1024;
  static thread_local std::map<BiasedProductKind, BiasedProductPlan> plans;
  if (plans.size() >= most_plans && !plans.contains(kind)) plans.clear();
  return plans.try_emplace(kind, kind, b).first->second.multiply(x, w, b, y);
}

}  // namespace infty::gpu::detail
