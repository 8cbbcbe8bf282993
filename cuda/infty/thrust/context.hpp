// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <infty/thrust/check.hpp>
#include <infty/thrust/tensor_cores.hpp>

namespace infty::gpu {

namespace detail {
class CapturedUploads;
}

/// Why GPU `number` cannot be used, in one line; empty if it can. @throws infty::DeviceError if
/// there is no GPU of that number
inline std::string why_unusable(int number) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  return detail::capability_refusal(properties.name, properties.major, properties.minor);
}

/// Why no GPU can be used here, in one line; empty if one can.
inline std::string why_unusable() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) {
    std::string reason;
    for (int number = count; number-- > 0;)
      if ((reason = why_unusable(number)).empty()) break;
    return reason;
  }
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

/// Number of GPUs, of which one at least is usable.
/// @throws infty::DeviceError if none is, with the reason
inline int device_count() {
  const std::string reason = why_unusable();
  require<DeviceError>(reason.empty(), "gpu", "no GPU can be used: ", reason);
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

/// Makes a GPU this thread's: tensors and work from now on are there.
/// @throws infty::DeviceError if there is no usable GPU or this one is none, infty::ValueError if
/// there is none of that number
inline void set_device(int number) {
  const int count = device_count();
  require(number >= 0 && number < count, "gpu::set_device", "device is ", number, ": there are ",
          count, ", counted from 0");
  const std::string reason = why_unusable(number);
  require<DeviceError>(reason.empty(), "gpu::set_device", "device ", number,
                       " cannot be used: ", reason);
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

/// Makes a GPU this thread's for as long as a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int number) : before_(device()) {
    if (number != before_) check(cudaSetDevice(number), "cudaSetDevice");
  }
  ~DeviceGuard() { cudaSetDevice(before_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_;
};

/// Ends on a GPU what was made there, by f. Where CUDA is gone that is gone with it.
template <class F>
void end_on(int number, F&& f) noexcept {
  try {
    const DeviceGuard there(number);
    f();
  } catch (...) {
  }
}

/// A stream and its number. CUDA gives a number once; the handle of a stream that is destroyed may
/// be that of the next.
struct NumberedStream {
  static constexpr unsigned long long legacy = ~0ULL;  ///< stands for CUDA's default stream

  /// Named, for the null stream is another one with nvcc's --default-stream per-thread.
  cudaStream_t handle = cudaStreamLegacy;
  unsigned long long number = legacy;
  CapturedUploads* captured = nullptr;  ///< of a `Graph` that is being captured, if one is
};

inline NumberedStream& current_stream() {
  static thread_local NumberedStream current;
  return current;
}

/// @throws infty::DeviceError while a `Graph` is being captured, whose work is not done yet
inline void refuse_captured(const char* call) {
  require<DeviceError>(!current_stream().captured, call,
                       "not while a Graph is captured, whose work is done when it is replayed");
}

/// @throws infty::DeviceError if there is no such stream
inline NumberedStream numbered(cudaStream_t stream) {
  NumberedStream out;
  if (stream == nullptr || stream == cudaStreamLegacy) return out;
  out.handle = stream;
  check(cudaStreamGetId(stream, &out.number), "cudaStreamGetId");
  return out;
}

}  // namespace detail

/// The stream that this thread's work goes to; CUDA's legacy default stream until set.
inline cudaStream_t stream() { return detail::current_stream().handle; }

/// While it lives, this thread's work goes to a stream of the caller's. Tensors made on it are to
/// be used on it, or after its work is done; they may be destroyed on any that is ordered behind
/// all who used them.
class [[nodiscard]] StreamGuard {
 public:
  /// Sends work to this stream, which must live as long; null is CUDA's legacy default stream.
  /// @throws infty::DeviceError if there is no such stream, or while a `Graph` is captured
  explicit StreamGuard(cudaStream_t stream) : before_(detail::current_stream()) {
    detail::refuse_captured("StreamGuard");
    detail::current_stream() = detail::numbered(stream);
  }
  ~StreamGuard() { detail::current_stream() = before_; }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  detail::NumberedStream before_;
};

namespace detail {

/// cuBLAS and cuSOLVER on one GPU for one thread.
class Libraries {
 public:
  Libraries() : device_(device()) {
    check(cublasCreate(&blas_), "cublasCreate");
    const cusolverStatus_t made = cusolverDnCreate(&solver_);
    if (made != CUSOLVER_STATUS_SUCCESS) cublasDestroy(blas_);
    check(made, "cusolverDnCreate");
  }
  ~Libraries() {
    // A thread may end on another GPU, and cuBLAS wants to end on the one that it began on.
    end_on(device_, [this] {
      cusolverDnDestroy(solver_);
      cublasDestroy(blas_);
    });
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
  int device_;
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
