// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.hpp"

// What a target's program does besides libFuzzer's work, which other compilers do without:
//   fuzz_NAME --seeds FOLDER      writes the target's seeds into a folder
//   fuzz_NAME --replay [PATH...]  runs the target on its seeds and on these files, or all of a
//   folder

namespace {

namespace fs = std::filesystem;

void write_seeds(const fs::path& folder) {
  fs::create_directories(folder);
  int number = 0;
  for (const auto& seed : infty::fuzz::seeds()) {
    std::ofstream out(folder / ("seed-" + std::to_string(number++)), std::ios::binary);
    out.write(seed.data(), static_cast<std::streamsize>(seed.size()));
    if (!out) throw std::runtime_error("cannot write into " + folder.string());
  }
}

void replay_file(const fs::path& path) {
  std::fprintf(stderr, "%s\n", path.c_str());  // which a crash leaves as the last line
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw std::runtime_error("cannot read " + path.string());
  infty::fuzz::run(bytes);
}

void replay(const std::vector<std::string>& paths) {
  int number = 0;
  for (const auto& seed : infty::fuzz::seeds()) {
    std::fprintf(stderr, "seed %d\n", number++);
    infty::fuzz::run(seed);
  }
  for (const fs::path path : paths) {
    std::vector<fs::path> files;
    if (fs::is_directory(path))
      std::copy(fs::directory_iterator(path), {}, std::back_inserter(files));
    else
      files.push_back(path);
    std::sort(files.begin(), files.end());
    for (const auto& file : files) replay_file(file);
  }
}

/// Whether the arguments were one of our own jobs.
bool done(int argc, char** argv) {
  ::setenv("INFTY_NO_POOL", "1", 0);  // before anything is allocated from it
  // Files that are saved, flushed and removed again are best in memory.
  if (fs::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 0);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "--seeds") {
    write_seeds(words[1]);
  } else if (!words.empty() && words[0] == "--replay") {
    replay({words.begin() + 1, words.end()});
  } else {
    return false;
  }
  return true;
}

}  // namespace

#if defined(INFTY_LIBFUZZER)

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (done(*argc, *argv)) std::exit(0);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  infty::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}

#else

int main(int argc, char** argv) {
  if (done(argc, argv)) return 0;
  std::fprintf(stderr, "%s --seeds FOLDER | --replay [PATH...]; it fuzzes if INFTY_FUZZ is on\n",
               argv[0]);
  return 1;
}

#endif
