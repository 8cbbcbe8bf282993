// SPDX-License-Identifier: MIT
#include <filesystem>

#include <infty/memory/long_term_memory.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::tests::error;

TEST_CASE("docs: a state is a value") {
  const infty::LongTermMemory<float> memory(
      {.model_dim = 8, .heads = 2, .basis = 16, .widths = {.05, .1}, .samples = 16},
      infty::Random(1));
  infty::Random random(2);
  const auto x = infty::tests::uniform_tensor<float>({2, 20, 8}, random);
  const auto y = infty::tests::uniform_tensor<float>({2, 7, 8}, random);
  const auto queries = infty::tests::uniform_tensor<float>({2, 3, 8}, random);

  auto state = memory.make_state(2);          // two rows: two documents
  memory.write(state, x);                     // [2, 20, 8]
  auto branch = state;                        // a copy: neither sees what the other takes in
  memory.write(branch, y);                    // [2, 7, 8]
  reset_row(branch, 1);                       // a new document begins in row 1
  const auto first = take_rows(state, 0, 1);  // the first document alone
  const auto bytes = bytes_of(state);         // the same after the next million vectors
  const bool good = is_finite(state);

  const infty::tests::TemporaryFolder folder;
  const auto path = folder / "state.safetensors";
  save_state(path, state);  // replaces the file whole
  auto restored = memory.make_state(1);
  load_state(path, restored);  // goes on where `state` is, both rows
  CHECK(batch_of(restored) == 2);
  CHECK(error(memory.read(restored, queries).value().to_vector(),
              memory.read(state, queries).value().to_vector()) == 0);

  CHECK(state.written[0] == 20);
  CHECK(branch.written[0] == 27);
  CHECK(branch.written[1] == 0);
  CHECK(batch_of(first) == 1);
  CHECK(bytes == bytes_of(branch));
  CHECK(good);
  CHECK(error(memory.read(branch, queries).value().slice(1, 2).to_vector(),
              std::vector<float>(24, 0)) == 0);  // a fresh row reads zeros
}
