// SPDX-License-Identifier: MIT
#include "run.hpp"

namespace sorting {

template bool run_model<infty::GaussianDensity>(const Options&, const Settings&, const std::string&,
                                                Finished&);

}  // namespace sorting
