// SPDX-License-Identifier: MIT
// expect: StoredScalar
#include <complex>

#include <infty/io/dtype.hpp>

template <infty::StoredScalar T>
void use() {}

#ifdef BAD
void test() { use<std::complex<float>>(); }
#else
void test() { use<float>(); }
#endif
