// SPDX-License-Identifier: MIT
// The target `infty::compiled`: what the lists of the headers named compiled.hpp have.

#include <infty/model/compiled.hpp>

#if !defined(INFTY_COMPILED)
#error "define INFTY_COMPILED, as whoever links this must"
#endif

namespace infty::detail {

template <int infty_version_number, int vector_bytes, int flags>
const bool CompiledFor<infty_version_number, vector_bytes, flags>::made = true;
template struct INFTY_COMPILED_FOR;

}  // namespace infty::detail

namespace infty {

INFTY_COMPILED_EIGEN(template, float)
INFTY_COMPILED_EIGEN(template, double)
INFTY_COMPILED_NN(template, float)
INFTY_COMPILED_NN(template, double)
INFTY_COMPILED_TRAIN(template, float)
INFTY_COMPILED_TRAIN(template, double)
INFTY_COMPILED_MEMORY(template, float)
INFTY_COMPILED_MEMORY(template, double)
INFTY_COMPILED_MODEL(template, float)
INFTY_COMPILED_MODEL(template, double)

}  // namespace infty
