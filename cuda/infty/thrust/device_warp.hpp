// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <infty/core/config.hpp>
#include <infty/thrust/fragments.hpp>
#include <infty/thrust/unroll.hpp>

namespace infty::detail {

/// N registers of this lane.
template <class T, int N>
class DeviceLanes {
 public:
  __host__ __device__ T* operator[](int) { return x_; }
  __host__ __device__ const T* operator[](int) const { return x_; }

 private:
  T x_[N];
};

/// A warp of the device. As with `DeviceBlock`, its functions do nothing on the host.
class DeviceWarp {
 public:
  template <class T, int N>
  using Lanes = DeviceLanes<T, N>;

  __host__ __device__ explicit DeviceWarp(int index) : index_(index) {}

  /// As `HostWarp::index`.
  __host__ __device__ int index() const { return index_; }

  /// As `HostWarp::lanes`.
  template <class F>
  __host__ __device__ void lanes(const F& f) const {
#if defined(__CUDA_ARCH__)
    f(static_cast<int>(threadIdx.x) % warp_lanes);
#endif
  }
  /// As `HostWarp::exchange`.
  template <class F>
  __host__ __device__ void exchange(const F& f) const {
#if defined(__CUDA_ARCH__)
    __syncwarp();
    lanes(f);
    __syncwarp();
#endif
  }

  /// As `HostWarp::fold_quads`.
  template <class T, int N, class Fold>
  __host__ __device__ void fold_quads(Lanes<T, N>& x, const Fold& fold) const {
#if defined(__CUDA_ARCH__)
    INFTY_OVER_REGISTERS
    for (int step = 1; step < 4; step *= 2) INFTY_OVER_REGISTERS
    for (int i = 0; i < N; ++i) x[0][i] = fold(x[0][i], __shfl_xor_sync(~0u, x[0][i], step));
#endif
  }

  /// As `HostWarp::multiply_tf32`.
  template <int N>
  __host__ __device__ void multiply_tf32(Lanes<float, N>& sum, int at,
                                         const Lanes<std::uint32_t, 4>& a,
                                         const Lanes<std::uint32_t, 2>& b) const {
#if defined(__CUDA_ARCH__)
    float* const c = sum[0] + at;
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0][0]), "r"(a[0][1]), "r"(a[0][2]), "r"(a[0][3]), "r"(b[0][0]), "r"(b[0][1]));
#endif
  }

  /// As `HostWarp::multiply_bf16`.
  template <int N>
  __host__ __device__ void multiply_bf16(Lanes<float, N>& sum, int at,
                                         const Lanes<std::uint32_t, 4>& a,
                                         const Lanes<std::uint32_t, 2>& b) const {
#if defined(__CUDA_ARCH__)
    float* const c = sum[0] + at;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0][0]), "r"(a[0][1]), "r"(a[0][2]), "r"(a[0][3]), "r"(b[0][0]), "r"(b[0][1]));
#endif
  }

 private:
  int index_;
};

}  // namespace infty::detail
