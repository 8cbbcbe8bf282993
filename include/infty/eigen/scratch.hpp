// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/core/pool.hpp>

namespace infty::detail {

/// Scratch memory of one task; of no elements, none.
template <class T>
class Scratch {
 public:
  explicit Scratch(Index n) : bytes_(static_cast<std::size_t>(n) * sizeof(T)) {
    if (bytes_ > 0) data_ = static_cast<T*>(HostPool::instance().allocate(bytes_));
  }
  ~Scratch() {
    if (data_) HostPool::instance().release(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  std::size_t bytes_;
  T* data_ = nullptr;
};

}  // namespace infty::detail
