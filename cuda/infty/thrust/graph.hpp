// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

#include <infty/core/error.hpp>
#include <infty/thrust/device_pool.hpp>
#include <infty/thrust/transfer.hpp>

namespace infty::gpu {

namespace detail {

/// What a call of `Graph::capture` has captured, and the stream and memory that are its own.
class CapturedWork {
 public:
  CapturedWork() : device_(device()) {
    check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "cudaEventCreate");
    try {
      check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
      place_ = {device_, numbered(stream_)};
      place_.stream.captured = &uploads_;
      DevicePool::instance().capture(place_);
    } catch (...) {
      if (stream_) cudaStreamDestroy(stream_);
      cudaEventDestroy(done_);
      throw;
    }
  }
  ~CapturedWork() {
    end_on(device_, [this] {
      cudaEventSynchronize(done_);
      if (work_) cudaGraphExecDestroy(work_);
      cudaStreamDestroy(stream_);
      cudaEventDestroy(done_);
      DevicePool::instance().forget(place_);
    });
  }
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;

  template <class F>
  void capture(F&& f) {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      const OnStream here(place_.stream);
      f();
    } catch (...) {
      if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess) cudaGraphDestroy(graph);
      cudaGetLastError();  // of a capture that what was thrown has ended
      throw;
    }
    check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    // cuBLAS may have asked for memory within the graph.
    const cudaError_t made =
        cudaGraphInstantiate(&work_, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch);
    cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate");
  }

  void launch() {
    refuse_captured("Graph::replay");
    check(cudaGraphLaunch(work_, stream()), "cudaGraphLaunch");
    check(cudaEventRecord(done_, stream()), "cudaEventRecord");
  }

 private:
  /// While it lives, this thread's work goes to a stream that is captured.
  class OnStream {
   public:
    explicit OnStream(const NumberedStream& stream)
        : before_(std::exchange(current_stream(), stream)) {}
    ~OnStream() { current_stream() = before_; }
    OnStream(const OnStream&) = delete;
    OnStream& operator=(const OnStream&) = delete;

   private:
    NumberedStream before_;
  };

  int device_;
  cudaEvent_t done_ = nullptr;  ///< behind the last launch
  cudaStream_t stream_ = nullptr;
  CapturedUploads uploads_;
  Place place_;
  cudaGraphExec_t work_ = nullptr;
};

}  // namespace detail

/// Work that is given to a GPU once and done as often as one likes, each time by a single launch,
/// as PyTorch's CUDAGraph: what a host spends on each operation and kernel is spent once.
///
///     infty::gpu::Graph graph;
///     graph.capture([&] { y = layer.forward(x); });
///     graph.replay();                              // y is layer.forward(x)
///     Gpu::from_host(x.value().data(), ...);
///     graph.replay();                              // y is that of the new x
///
/// Work is done again on the same tensors, with the same numbers that the host has put in, such as
/// Adam's factors, a seed's place in the stream of random numbers, or how long a state is: a graph
/// is for functions of which none of these changes. What f reads and was made outside of it has to
/// live as long as the graph, parameters, states and the matrices of a long-term memory's lengths
/// among it. Memory of what is made in the captured call is nobody else's until the graph is gone.
///
/// No GPU has run this yet.
class Graph {
 public:
  /// Calls f() twice, in place of what was captured before: once as it is, so that what is made
  /// once is made, and once to capture what this thread's GPU is given, which is not done then. f
  /// may not read a number of the GPU's, nor choose a stream. Values are not checked where they
  /// lie: a token out of range is a row of zeros. Returns the pool's cached memory to the system
  /// first, for captured work needs its own. No other thread should capture or trim meanwhile.
  /// @throws infty::DeviceError if f waits or CUDA refuses, and what f throws; what was captured
  /// before is kept then
  template <class F>
  void capture(F&& f) {
    detail::refuse_captured("Graph::capture");
    f();
    synchronize();
    DevicePool::instance().trim();
    auto work = std::make_unique<detail::CapturedWork>();
    work->capture(f);
    work_ = std::move(work);
  }

  /// Does what was captured, behind all that this thread's stream was given before. Does not wait
  /// for it.
  /// @throws infty::ValueError if nothing was captured, infty::DeviceError if CUDA refuses
  void replay() const {
    require(work_ != nullptr, "Graph::replay", "nothing has been captured");
    work_->launch();
  }

 private:
  std::unique_ptr<detail::CapturedWork> work_;
};

}  // namespace infty::gpu
