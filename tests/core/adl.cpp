// SPDX-License-Identifier: MIT
// Argument-dependent lookup finds our functions in a user's unqualified calls as soon as one of our
// types stands in an argument, if only as a template's. They must not be chosen for types that are
// not ours: here all names are a user's, too, of the kind that loses to any other that would do.
#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/infty.hpp>

#include "support/catch.hpp"

namespace somebody {

struct Mine {};

template <class T>
struct Box {
  T inside;
};

// Called as name(arguments...): the ones below it, with the type that is asked for in front.
// clang-format off
#define INFTY_TEST_NAMES(X) \
  X(add) X(affine_density) X(batch_of) X(bin_probability) X(bytes_of) X(clip_grad_norm) \
  X(clone) X(concat) X(condition_number) X(contract) X(copy_parameters) X(count_parameters) \
  X(cross_entropy) X(dropout) X(embedding) X(evaluate) X(expectation) X(expected_values) \
  X(fill_normal) X(fill_uniform) X(fit) X(for_each_member) X(for_each_parameter) X(gate) \
  X(grad_norm) X(gradient_check) X(is_finite) X(kl) X(layer_norm) X(linear) X(load_parameters) \
  X(load_state) X(matrix) X(mean) X(moment_density) X(multiply) X(narrow) X(parallel_for) \
  X(parallel_tasks) X(project_heads) X(put_rows) X(quantile_locations) X(record) \
  X(relative_attention) X(relu) X(resample) X(reset_row) X(reshape) X(ridge_matrix) \
  X(sample_locations) X(save_optimizer) X(save_parameters) X(save_random) X(save_state) \
  X(scale) X(sigmoid) X(softplus) X(stability) X(sum) X(take_rows) X(token_losses) \
  X(train_step) X(update) X(visit_members) X(weighted_coefficients) X(wrap) \
  X(write_coefficients) X(zero_grad)
// clang-format on
#define INFTY_TEST_NAMES_OF_TYPES(X) \
  X(distance_encoding) X(even_locations) X(named_parameters) X(parameters) X(to)

#define INFTY_TEST_DEFINE(name)    \
  template <class... Arguments>    \
  Mine name(const Arguments&...) { \
    return {};                     \
  }
INFTY_TEST_NAMES(INFTY_TEST_DEFINE)
INFTY_TEST_DEFINE(join_rows)
#undef INFTY_TEST_DEFINE

#define INFTY_TEST_DEFINE(name)          \
  template <class T, class... Arguments> \
  Mine name(const Arguments&...) {       \
    return {};                           \
  }
INFTY_TEST_NAMES_OF_TYPES(INFTY_TEST_DEFINE)
#undef INFTY_TEST_DEFINE

template <class T>
constexpr bool is_mine = std::is_same_v<T, Mine>;

/// Whether all calls with C in some place are the user's.
template <class C>
bool all_are_mine(C& c) {
#define INFTY_TEST_CALL(name)                                                                     \
  static_assert(is_mine<decltype(name(c))> && is_mine<decltype(name(c, c))> &&                    \
                    is_mine<decltype(name(c, 0L))> && is_mine<decltype(name(1, c))> &&            \
                    is_mine<decltype(name("a", c))> && is_mine<decltype(name(c, c, c))> &&        \
                    is_mine<decltype(name(c, 0L, 1L))> && is_mine<decltype(name(0L, 1L, c))> &&   \
                    is_mine<decltype(name(c, [](auto&&...) {}))> &&                               \
                    is_mine<decltype(name(c, c, c, 1))> && is_mine<decltype(name(c, c, c, c))> && \
                    is_mine<decltype(name(c, 0L, c))>,                                            \
                #name);
  INFTY_TEST_NAMES(INFTY_TEST_CALL)
#undef INFTY_TEST_CALL
#define INFTY_TEST_CALL(name)                                                                \
  static_assert(is_mine<decltype(name<float>(c))> && is_mine<decltype(name<float>(c, c))> && \
                    is_mine<decltype(name<infty::EigenBackend>(c))>,                         \
                #name);
  INFTY_TEST_NAMES_OF_TYPES(INFTY_TEST_CALL)
#undef INFTY_TEST_CALL
  return true;
}

using Tensor = infty::Tensor<float>;
using Variable = infty::Variable<float>;
using Linear = infty::Linear<float>;
using State = infty::ShortTermState<float>;
using Basis = infty::GaussianBasis<double>;

TEST_CASE("adl: our functions are not chosen for types that are not ours") {
  const auto tried = [](auto... all) { return (all_are_mine(all) && ...); };
  CHECK(tried(std::vector<Tensor>{}, std::vector<Variable>{}, std::vector<Linear>{},
              std::vector<State>{}, std::vector<Basis>{}));
  CHECK(tried(Box<Tensor>{}, Box<Variable>{}, Box<Linear>{}, Box<State>{},
              Box<std::optional<Basis>>{}));
  CHECK(tried(std::optional<Tensor>{}, std::array<Variable, 2>{}, std::pair<Tensor, Linear>{},
              std::tuple<Variable, int>{}, std::vector<infty::RowCounts>{}));
  CHECK(std::is_same_v<Mine, decltype(join_rows(std::vector<Tensor>{}))>);
  CHECK(std::is_same_v<Mine, decltype(join_rows(Box<State>{}))>);
}

}  // namespace somebody

#undef INFTY_TEST_NAMES
#undef INFTY_TEST_NAMES_OF_TYPES
