// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <infty/thrust/check.hpp>

namespace infty::gpu {

/// Why no GPU can be used here, in one line; empty if one can.
inline std::string why_unusable() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return "";
  cudaGetLastError();
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (status == cudaErrorInsufficientDriver && driver == 0) return "there is no NVIDIA driver";
  if (status == cudaErrorInsufficientDriver)
    return "the NVIDIA driver is for CUDA " + std::to_string(driver / 1000) + '.' +
           std::to_string(driver % 1000 / 10) + ", this program for CUDA " +
           std::to_string(CUDART_VERSION / 1000) + '.' + std::to_string(CUDART_VERSION % 1000 / 10);
  if (status == cudaSuccess || status == cudaErrorNoDevice) return "there is no NVIDIA GPU";
  return std::string("CUDA says ") + cudaGetErrorString(status);
}

/// Number of usable GPUs. @throws infty::DeviceError if there is none, with the reason
inline int device_count() {
  const std::string reason = why_unusable();
  require<DeviceError>(reason.empty(), "gpu", "no GPU can be used: ", reason);
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

/// Makes a GPU this thread's: tensors and work from now on are there.
/// @throws infty::DeviceError if there is no usable GPU, infty::ValueError if there is none of that
/// number
inline void set_device(int number) {
  const int count = device_count();
  require(number >= 0 && number < count, "gpu::set_device", "device is ", number, ": there are ",
          count, ", counted from 0");
  check(cudaSetDevice(number), "cudaSetDevice");
}

/// This thread's GPU.
inline int device() {
  int number = 0;
  check(cudaGetDevice(&number), "cudaGetDevice");
  return number;
}

/// Name, compute capability and memory of this thread's GPU, for reports.
inline std::string description() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device()), "cudaGetDeviceProperties");
  return std::string(properties.name) + ", sm_" + std::to_string(properties.major) +
         std::to_string(properties.minor) + ", " + std::to_string(properties.totalGlobalMem >> 20) +
         " MiB";
}

namespace detail {

struct Settings {
  cudaStream_t stream = nullptr;
  bool tf32 = false;
};
inline Settings& settings() {
  static thread_local Settings current;
  return current;
}

}  // namespace detail

/// The stream that this thread's work goes to; CUDA's default stream until set.
inline cudaStream_t stream() { return detail::settings().stream; }

/// While it lives, this thread's work goes to a stream of the caller's. Tensors made on it are to
/// be used on it, or after its work is done.
class [[nodiscard]] StreamGuard {
 public:
  /// Sends work to this stream, which must live as long.
  explicit StreamGuard(cudaStream_t stream) : before_(detail::settings().stream) {
    detail::settings().stream = stream;
  }
  ~StreamGuard() { detail::settings().stream = before_; }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  cudaStream_t before_;
};

/// Whether this thread's matrix products in float may round their factors to TF32 (10 bits of
/// mantissa), which tensor cores multiply several times faster. Off until set.
inline bool allow_tf32() { return detail::settings().tf32; }
/// Sets whether they may.
inline void set_allow_tf32(bool on) { detail::settings().tf32 = on; }

namespace detail {

/// cuBLAS and cuSOLVER on one GPU for one thread.
class Libraries {
 public:
  Libraries() {
    check(cublasCreate(&blas_), "cublasCreate");
    check(cusolverDnCreate(&solver_), "cusolverDnCreate");
  }
  ~Libraries() {
    cusolverDnDestroy(solver_);
    cublasDestroy(blas_);
  }
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  /// On the current stream.
  cublasHandle_t blas() const {
    check(cublasSetStream(blas_, stream()), "cublasSetStream");
    return blas_;
  }
  /// On the current stream.
  cusolverDnHandle_t solver() const {
    check(cusolverDnSetStream(solver_, stream()), "cusolverDnSetStream");
    return solver_;
  }

 private:
  cublasHandle_t blas_ = nullptr;
  cusolverDnHandle_t solver_ = nullptr;
};

/// Those of this thread and its GPU.
inline const Libraries& libraries() {
  static thread_local std::vector<std::unique_ptr<Libraries>> of_device;
  const auto number = static_cast<std::size_t>(device());
  if (of_device.size() <= number) of_device.resize(number + 1);
  if (!of_device[number]) of_device[number] = std::make_unique<Libraries>();
  return *of_device[number];
}

}  // namespace detail

}  // namespace infty::gpu
