// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/vocabulary.hpp>

#include "fuzz/fuzz.hpp"
#include "io/temporary_folder.hpp"

// Any bytes as the file of a vocabulary and, behind a zero byte, a text: the file is refused, or
// comes back from one that is saved, and the text is encoded or refused.

namespace infty::fuzz {

void run(std::string_view bytes) {
  Input input(bytes);
  const MemoryFile file(input.part());
  const auto text = input.rest();
  accepted([&] {
    const auto vocabulary = Vocabulary::load(file.path());
    const tests::TemporaryFolder folder;
    vocabulary.save(folder / "a");
    const auto again = Vocabulary::load(folder / "a");
    check(again.size() == vocabulary.size(), "the number of tokens comes back");
    for (Index id = 0; id < vocabulary.size(); ++id) {
      check(again.token(id) == vocabulary.token(id), "a token comes back");
      check(again.count(id) == vocabulary.count(id), "its count comes back");
      check(vocabulary.find(vocabulary.token(id)) == id, "a token has its number");
    }
    for (const TextUnit unit : {TextUnit::word, TextUnit::character, TextUnit::byte})
      accepted([&] { vocabulary.decode(vocabulary.encode(text, unit), unit); });
  });
}

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  const auto text = "\0the cat\xC3\xA9\n"s;
  return {"12\tthe\n3\t<unk>\n3\t<eos>\n0\tcat\n" + text,
          "5\t\\x0a\n4\t\xC3\xA9\n3\t\\xff\n" + text, "9223372036854775807\ta\n1\tb" + text,
          "1\t\\x4\n" + text};
}

}  // namespace infty::fuzz
