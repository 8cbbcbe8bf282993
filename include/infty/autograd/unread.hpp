// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <infty/autograd/fwd.hpp>
#include <infty/autograd/gradient_handle.hpp>
#include <infty/autograd/variable.hpp>

namespace infty {

/// A variable without its value: what an operation keeps of an input, or of its output, whose value
/// its backward pass does not read. The memory of a value that nobody reads any more is free for
/// others, long before the gradient arrives.
template <class T, class Backend>
class Unread : public GradientHandle<Unread<T, Backend>, T, Backend> {
 public:
  using TensorType = Tensor<T, Backend>;

  /// Says that the backward pass does not read the value of `variable`.
  explicit Unread(const Variable<T, Backend>& variable)
      : body_(variable.body_),
        gradient_(variable.body_ ? variable.body_->gradient : nullptr),
        identity_(variable.identity()),
        shape_(variable.shape()) {}

  /// Extents that the value had.
  const Shape& shape() const { return shape_; }

  /// That of the variable: see `Variable::identity`.
  const void* identity() const { return identity_; }

 private:
  friend class Tape;
  friend class GradientHandle<Unread, T, Backend>;
  using GradientBody = detail::GradientBody<T, Backend>;

  GradientBody* gradient_if_any() const { return gradient_.get(); }
  GradientBody& gradient() const {
    require(gradient_ != nullptr, "Unread", "a gradient of ", shape_,
            " arrives for a variable that took none when it became unread");
    return *gradient_;
  }

  /// The variable as it is now, or none if no handle is left that could change it.
  Variable<T, Backend> now() const {
    Variable<T, Backend> variable;
    variable.body_ = body_.lock();
    return variable;
  }
  /// Whether these are the elements of the variable, unless it is gone.
  bool has(const TensorType& value) const {
    const auto variable = now();
    return !variable.body_ || same(value, variable.value());
  }
  Shape shape_now() const {
    const auto variable = now();
    if (variable.body_) return variable.shape();
    return gradient_ && gradient_->left ? gradient_->last_shape : shape_;
  }
  bool requires_grad_now() const {
    const auto variable = now();
    return variable.body_ ? variable.requires_grad() : this->requires_grad();
  }

  std::weak_ptr<typename Variable<T, Backend>::Body> body_;
  std::shared_ptr<GradientBody> gradient_;
  const void* identity_;
  Shape shape_;
};

/// An input of an operation, for `record`, of whose value the backward pass may need nothing.
template <class T, class B>
struct ReadIf {
  const Variable<T, B>& variable;  ///< must live until `record` has returned
  const Tensor<T, B>& value;       ///< that of the variable if it is read, else empty

  /// Says which value the backward pass reads of `input`.
  ReadIf(const Variable<T, B>& input, const Tensor<T, B>& read) : variable(input), value(read) {}

  /// Whether `Tape::backward` leaves a gradient there.
  bool requires_grad() const { return variable.requires_grad(); }
};

}  // namespace infty
