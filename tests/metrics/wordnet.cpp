// SPDX-License-Identifier: MIT
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <unistd.h>

#include <infty/metrics/meteor.hpp>
#include <infty/metrics/wordnet.hpp>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::WordNet;
using Words = std::set<std::string>;

namespace wordnet_test {

/// A dictionary of a few words, in a folder of its own.
class Folder {
 public:
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("infty_wordnet_" + std::to_string(::getpid()));

  Folder() {
    std::filesystem::create_directories(path);
    for (const char* part : {"noun", "verb", "adj", "adv"}) {
      write(std::string("data.") + part, "");
      write(std::string("index.") + part, "  1 a licence  \n");
      write(std::string(part) + ".exc", "");
    }
    const std::string first =
        "00000000 06 n 03 movie 0 moving_picture 1 Film 2 001 @ 1 n 0000 | a\n";
    write("data.noun", first + "00000068 06 n 02 layer 0 film 1 000 | b\n");
    write("index.noun",
          "  1 a licence  \nfilm n 2 1 @ 2 0 00000000 00000068  \nlayer n 1 0 1 0 00000068  \n"
          "movie n 1 0 1 0 00000000  \n");
    write("noun.exc", "filmses nothing\nfilmses film\n");
    write("data.adj", "00000000 00 s 02 close(p) 0 near(ip) 0 000 | c\n");
    write("index.adj", "close a 1 0 1 0 00000000  \nnear a 1 0 1 0 00000000  \n");
  }
  ~Folder() { std::filesystem::remove_all(path); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
  }
};

}  // namespace wordnet_test

TEST_CASE("WordNet: synonyms of a word's base forms", "[metrics]") {
  const wordnet_test::Folder folder;
  const WordNet words(folder.path);
  CHECK(words.synonyms("film") == Words{"movie", "Film", "layer", "film"});
  CHECK(words.synonyms("Films") == Words{"movie", "Film", "layer", "film"});
  CHECK(words.synonyms("filmses") == Words{"movie", "Film", "layer", "film"});
  CHECK(words.synonyms("movies") == Words{"movie", "Film"});
  CHECK(words.synonyms("nearer") == Words{"close", "near"});
  CHECK(words.synonyms("nothing").empty());
  CHECK(words.synonyms("").empty());
}

TEST_CASE("METEOR: a synonym matches where neither word nor stem does", "[metrics]") {
  const wordnet_test::Folder folder;
  const WordNet words(folder.path);
  CHECK(infty::meteor("a movie", "a film").matches.size() == 1);
  CHECK(infty::meteor("a layer", "a film", {}, &words).matches.size() == 2);
  CHECK(infty::meteor("a layer", "a book", {}, &words).matches.size() == 1);
}

TEST_CASE("WordNet: files that are none, or cut", "[metrics]") {
  const wordnet_test::Folder folder;
  CHECK_THROWS_WITH(WordNet(folder.path / "not there"), Contains("data.noun"));
  folder.write("index.verb", "go v one 0 1 0 00000000\n");
  CHECK_THROWS_WITH(WordNet(folder.path),
                    Contains("index.verb") && Contains("'one' stands where a number must"));
  folder.write("index.verb", "go v 99999999999999999999 0 1 0\n");
  CHECK_THROWS_WITH(WordNet(folder.path), Contains("stands where a number must"));
  folder.write("index.verb", "go v 888888888888 0 1 0\n");
  CHECK_THROWS_WITH(WordNet(folder.path), Contains("a line ends too soon"));
  folder.write("index.verb", "go v 1 0 1 0 00000000\n");
  CHECK_THROWS_WITH(WordNet(folder.path),
                    Contains("'go' is at byte 0, behind the end of") && Contains("data.verb"));
  folder.write("index.verb", "");
  folder.write("index.noun", "film n 1 0 1 0 00000069\n");
  CHECK_THROWS_WITH(WordNet(folder.path).synonyms("film"), Contains("data.noun"));
  folder.write("index.noun", "film n 1 0 1 0 00000000\n");
  folder.write("data.noun", "00000000 06 n ff movie 0\n");
  CHECK_THROWS_WITH(WordNet(folder.path).synonyms("film"), Contains("a line ends too soon"));
}
