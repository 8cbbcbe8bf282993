// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <infty/parallel/communicator.hpp>
#include <infty/parallel/share_by_file.hpp>
#include <infty/thrust/context.hpp>

namespace infty {

namespace gpu {

/// The same for NCCL. @throws infty::CommunicationError that names the call and what NCCL says of
/// it
inline void check(ncclResult_t status, const char* call) {
  require<CommunicationError>(status == ncclSuccess || status == ncclInProgress, call,
                              ncclGetErrorString(status));
}

}  // namespace gpu

/// A rank that has a GPU, and talks to the others by NCCL: over NVLink, PCI Express, InfiniBand or
/// sockets, as that finds them. Ranks are processes or threads, each with a GPU of its own. Bytes
/// come from and go to the host's memory, through a block on the GPU that grows as it has to. A
/// copy is the same rank.
///
/// NCCL must be told which ranks belong together, by 128 bytes that the first one makes: they go by
/// a communicator that ranks have, such as `MpiCommunicator`, or by a file that all of them see,
/// where a launcher starts processes and nothing else, as Slurm without PMIx.
///
/// Unlike other communicators it does not say which rank is gone, nor that another number of bytes
/// was sent than is waited for: a wait ends where NCCL finds an error, and may not end otherwise.
class NcclCommunicator {
 public:
  /// The same ranks as those of another communicator, which tells them from others.
  /// @param device  the GPU of this rank
  /// @throws infty::DeviceError if it cannot be used; infty::CommunicationError
  template <Communicator C>
  NcclCommunicator(C& ranks, int device) {
    gpu::set_device(device);
    ncclUniqueId id{};
    if (ranks.rank() == 0) gpu::check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    ranks.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
    state_ = std::make_shared<State>(id, ranks.rank(), ranks.size(), device);
  }

  /// Ranks that nothing else joins: by `share_by_file`, with a path that is new for each start.
  /// @param seconds  that the others wait for the first rank
  /// @throws infty::ValueError unless 0 <= rank < size; as above and `share_by_file`
  NcclCommunicator(const std::filesystem::path& path, int rank, int size, int device,
                   double seconds = 60) {
    detail::require_root("NcclCommunicator", rank, size);
    gpu::set_device(device);
    ncclUniqueId id{};
    if (rank == 0) gpu::check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    share_by_file(path, rank, std::as_writable_bytes(std::span(&id, 1)), seconds);
    state_ = std::make_shared<State>(id, rank, size, device);
  }

  // A move copies as well, so that no rank is left empty.
  NcclCommunicator(const NcclCommunicator&) = default;             ///< The same rank.
  NcclCommunicator& operator=(const NcclCommunicator&) = default;  ///< The same rank.

  /// Returns which of the ranks this is.
  int rank() const { return state_->rank; }
  /// Returns how many there are.
  int size() const { return state_->size; }

  /// Sends bytes to another rank, and returns when it has them. @throws infty::ValueError for a
  /// rank that is none or its own; infty::CommunicationError; infty::DeviceError
  void send(int to, std::span<const std::byte> bytes) {
    detail::require_other_rank("send", to, rank(), size());
    pass(to, bytes, -1, {});
  }
  /// Waits for the next bytes of another rank, which must be as many. @throws as `send`
  void receive(int from, std::span<std::byte> bytes) {
    detail::require_other_rank("receive", from, rank(), size());
    pass(-1, {}, from, bytes);
  }
  /// Sends to one rank and receives from one, both at once. @throws as `send`
  void exchange(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    detail::require_other_rank("exchange", to, rank(), size());
    detail::require_other_rank("exchange", from, rank(), size());
    pass(to, bytes, from, into);
  }
  /// Replaces the values by their sum over ranks, by ncclAllReduce. @throws as `send`
  void all_reduce(std::span<float> values) { reduce(values, ncclFloat32); }
  /// Replaces the values by their sum over ranks, by ncclAllReduce. @throws as `send`
  void all_reduce(std::span<double> values) { reduce(values, ncclFloat64); }
  /// Replaces the bytes by those of `root`, by ncclBroadcast. @throws infty::ValueError for a root
  /// that is no rank; as `send`
  void broadcast(std::span<std::byte> bytes, int root) {
    detail::require_root("broadcast", root, size());
    if (bytes.empty()) return;
    const auto there = state_->use();
    std::byte* const block = state_->block(bytes.size());
    state_->to_device(block, bytes);
    gpu::check(
        ncclBroadcast(block, block, bytes.size(), ncclUint8, root, state_->comm, state_->stream),
        "ncclBroadcast");
    state_->wait("ncclBroadcast");
    state_->to_host(bytes, block);
  }
  /// Waits for all. @throws as `send`
  void barrier() {
    float one = 1;
    all_reduce(std::span<float>(&one, 1));
  }
  /// Ends what NCCL does on this rank: the others find an error, or wait until their launcher ends
  /// them.
  void abort(const std::string& /*why*/) { state_->abort(); }

 private:
  struct State {
    State(const ncclUniqueId& id, int own, int all, int gpu_number)
        : rank(own), size(all), device(gpu_number) {
      gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                 "cudaStreamCreateWithFlags");
      const ncclResult_t begun = ncclCommInitRank(&comm, size, id, rank);
      if (begun != ncclSuccess) cudaStreamDestroy(stream);
      gpu::check(begun, "ncclCommInitRank");
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      gpu::detail::end_on(device, [this] {
        if (comm) ncclCommDestroy(comm);
        if (memory) cudaFree(memory);
        cudaStreamDestroy(stream);
      });
    }

    /// Begins a call: for as long as the guard lives the calling thread has the rank's GPU.
    [[nodiscard]] gpu::detail::DeviceGuard use() const {
      require<CommunicationError>(comm != nullptr, "NcclCommunicator", "it has been aborted");
      return gpu::detail::DeviceGuard(device);
    }

    /// Returns a block of the GPU's memory, the last one where it is large enough.
    std::byte* block(std::size_t bytes) {
      if (bytes > held) {
        if (memory) gpu::check(cudaFree(memory), "cudaFree");
        memory = nullptr;
        held = 0;
        gpu::check(cudaMalloc(&memory, bytes), "cudaMalloc");
        held = bytes;
      }
      return static_cast<std::byte*>(memory);
    }

    void to_device(std::byte* to, std::span<const std::byte> from) const {
      gpu::check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream),
                 "cudaMemcpyAsync");
    }
    /// Copies, and returns when it has: behind `wait`, for a copy to memory that a system may page
    /// blocks until NCCL is done, or for ever.
    void to_host(std::span<std::byte> to, const std::byte* from) const {
      gpu::check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream),
                 "cudaMemcpyAsync");
      gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }

    /// Waits until all of it is done, or NCCL finds an error, behind which nothing can be said.
    void wait(const char* call) {
      for (;;) {
        const cudaError_t status = cudaStreamQuery(stream);
        if (status == cudaSuccess) return;
        if (status != cudaErrorNotReady) gpu::check(status, "cudaStreamQuery");
        static_cast<void>(cudaGetLastError());  // no launch is to find it
        ncclResult_t found = ncclSuccess;
        gpu::check(ncclCommGetAsyncError(comm, &found), "ncclCommGetAsyncError");
        if (found != ncclSuccess && found != ncclInProgress) {
          abort();
          gpu::check(found, call);
        }
        std::this_thread::yield();
      }
    }

    void abort() {
      if (comm) ncclCommAbort(comm);
      comm = nullptr;
    }

    int rank, size, device;
    cudaStream_t stream = nullptr;
    ncclComm_t comm = nullptr;
    void* memory = nullptr;
    std::size_t held = 0;
  };

  /// Sends to a rank, if there is one, and receives from one, both at once.
  void pass(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    const auto there = state_->use();
    const std::size_t sent = (std::max)(bytes.size(), std::size_t{1});  // 0 bytes are a message
    const std::size_t received = (std::max)(into.size(), std::size_t{1});
    std::byte* const out = state_->block(sent + received);
    std::byte* const in = out + sent;
    if (!bytes.empty()) state_->to_device(out, bytes);
    gpu::check(ncclGroupStart(), "ncclGroupStart");
    // A group that was begun is ended, whatever becomes of its calls: the next would be in it.
    ncclResult_t sending = ncclSuccess, receiving = ncclSuccess;
    if (to >= 0) sending = ncclSend(out, sent, ncclUint8, to, state_->comm, state_->stream);
    if (from >= 0 && sending == ncclSuccess)
      receiving = ncclRecv(in, received, ncclUint8, from, state_->comm, state_->stream);
    const ncclResult_t ended = ncclGroupEnd();
    gpu::check(sending, "ncclSend");
    gpu::check(receiving, "ncclRecv");
    gpu::check(ended, "ncclGroupEnd");
    state_->wait("ncclGroupEnd");
    if (!into.empty()) state_->to_host(into, in);
  }

  template <class T>
  void reduce(std::span<T> values, ncclDataType_t type) {
    if (values.empty()) return;
    const auto there = state_->use();
    const auto bytes = std::as_writable_bytes(values);
    std::byte* const block = state_->block(bytes.size());
    state_->to_device(block, bytes);
    gpu::check(
        ncclAllReduce(block, block, values.size(), type, ncclSum, state_->comm, state_->stream),
        "ncclAllReduce");
    state_->wait("ncclAllReduce");
    state_->to_host(bytes, block);
  }

  std::shared_ptr<State> state_;
};

static_assert(Communicator<NcclCommunicator>);

}  // namespace infty
