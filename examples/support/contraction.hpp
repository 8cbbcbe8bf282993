// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/memory/long_term_config.hpp>

// How the ∞-former's memory contracts its past when more comes, in programs. A memory's word may
// name it, `infty-power`, so that several can be compared; that of all others is --contraction.

namespace support {

using infty::Index;

/// The ways by name.
inline const std::vector<std::string> contraction_names{"fixed", "power", "uniform", "mixed",
                                                        "learned"};

/// The ways to read what waits for its block, by name.
inline const std::vector<std::string> waiting_names{"written", "attended", "left_out",
                                                    "short_term"};

namespace detail {
// A function: nvcc 13 crashes on a lambda that is called where the list is defined.
inline std::vector<std::string> contracted_names() {
  std::vector<std::string> all;
  for (const std::string form : {"infty-", "infty-sticky-"})
    for (const std::string& name : contraction_names)
      if (name != "fixed") all.push_back(form + name);
  return all;
}
}  // namespace detail

/// The words of memories that name theirs: `infty-` or `infty-sticky-` and the name.
inline const std::vector<std::string> contracted_names = detail::contracted_names();

/// How the past is contracted, beside the constants of a long-term memory, which have the tau.
struct Contraction {
  std::string name = "fixed";         ///< where the memory's word has none
  double power = 1;                   ///< p, of `power` and `uniform`
  std::vector<double> powers{.5, 1};  ///< p of each part of `mixed` and `learned`; 0: by tau
  Index block = 16;                   ///< vectors that all but `fixed` and `power` write together
  std::string waiting = "written";    ///< how a read sees those that wait for their block
};

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_contraction_setting(const char* group, Contraction& c, See&& see) {
  see(group, "contraction", c.name,
      "of the LTM's past, where the memory's word has none: fixed (to --tau), power (by --power), "
      "uniform (so, in ever fewer writes), mixed (parts by --powers, with heads of their own), "
      "learned (such parts, mixed by a gate)",
      contraction_names);
  see(group, "power", c.power,
      "p: when L vectors come, w keep (w / (w + L))^p of the LTM; 1: all of the past is equally "
      "dense, less: the older is denser");
  see(group, "powers", c.powers, "p of each part, of mixed and learned; 0: to --tau");
  see(group, "block", c.block,
      "vectors, or later means of vectors, that are written together, of uniform, mixed and "
      "learned");
  see(group, "waiting", c.waiting,
      "what waits for its block is read: written (behind a copy of the LTM), attended (by "
      "attention beside the LTM), left_out (not at all), short_term (in front of what the "
      "short-term memory holds); of uniform, mixed and learned",
      waiting_names);
}

/// Whether a word stands for the ∞-former's memory, in any of its forms.
inline bool is_infty(const std::string& memory) { return memory.starts_with("infty"); }

/// Whether it samples its past where it was looked at.
inline bool is_sticky(const std::string& memory) { return memory.starts_with("infty-sticky"); }

/// Whether a word says how the past is contracted.
inline bool names_contraction(const std::string& memory) {
  return std::find(contracted_names.begin(), contracted_names.end(), memory) !=
         contracted_names.end();
}

/// How an ∞-former's memory contracts its past: as its word says, or else as the settings do.
inline std::string contraction_of(const std::string& memory, const Contraction& c) {
  return names_contraction(memory) ? memory.substr(memory.rfind('-') + 1) : c.name;
}

/// Whether it is written by blocks, the fewer the more there was.
inline bool writes_blocks(const std::string& memory, const Contraction& c) {
  const std::string name = contraction_of(memory, c);
  return is_infty(memory) && name != "fixed" && name != "power";
}

/// Vectors that wait to be written: as many fewer stand in the short-term memory.
inline Index waiting_of(const std::string& memory, const Contraction& c) {
  return writes_blocks(memory, c) ? c.block : 0;
}

/// Signals that a memory has of one past.
inline Index parts_of(const std::string& memory, const Contraction& c) {
  const std::string name = contraction_of(memory, c);
  return is_infty(memory) && (name == "mixed" || name == "learned") ? std::ssize(c.powers) : 1;
}

/// Throws infty::ValueError unless a memory can contract so, with so many heads, vectors beside its
/// basis functions, and of these so many of each width.
inline void check_contraction(const char* program, const std::string& memory, const Contraction& c,
                              Index heads, Index recent, Index of_each_width,
                              const char* heads_option = "--heads") {
  if (!is_infty(memory)) return;
  const std::string name = contraction_of(memory, c);
  infty::require(memory != "infty-gibbs" || !writes_blocks(memory, c), program, "--contraction is ",
                 name, ": of infty-gibbs it must be fixed or power");
  infty::require(waiting_of(memory, c) <= recent, program, "--block is ", c.block,
                 ": it must be at most ", recent,
                 ", the vectors of the short-term memory, whose places those have that wait");
  if (name != "mixed" && name != "learned") return;
  const Index parts = std::ssize(c.powers);
  infty::require(parts >= 1, program, "--powers is empty: it must have an element");
  for (const double p : c.powers)
    infty::require(p == 0 || p >= .01, program, "--powers has ", p,
                   ": each must be 0, for --tau, or at least 0.01");
  infty::require(name != "mixed" || heads % parts == 0, program, "--powers has ", parts,
                 " elements: of mixed, whose parts share out the heads, their number must divide ",
                 heads_option, " = ", heads);
  infty::require(parts <= of_each_width, program, "--powers has ", parts,
                 " elements, and there are ", of_each_width,
                 " basis functions of each width: each part must have one");
  infty::require(parts <= c.block, program, "--block is ", c.block,
                 ": it must be at least the number of --powers, ", parts);
}

}  // namespace support
