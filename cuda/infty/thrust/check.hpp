// SPDX-License-Identifier: MIT
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <infty/thrust/device_error.hpp>

namespace infty {

namespace gpu {

/// Every call of CUDA and its libraries passes through here.
/// @throws infty::DeviceError that names the call and what CUDA says of it
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next call would report this error again
  raise<DeviceError>(call, cudaGetErrorName(status), ": ", cudaGetErrorString(status));
}

/// The same for cuBLAS.
inline void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    raise<DeviceError>(call, cublasGetStatusName(status), ": ", cublasGetStatusString(status));
}

/// The same for cuSOLVER.
inline void check(cusolverStatus_t status, const char* call) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    raise<DeviceError>(call, "cuSOLVER's status is ", static_cast<int>(status));
}

}  // namespace gpu

}  // namespace infty
