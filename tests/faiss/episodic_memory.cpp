// SPDX-License-Identifier: MIT
#include <cstdint>
#include <vector>

#include <infty/faiss/index.hpp>
#include <infty/lifelong/learn_stream.hpp>
#include <infty/lifelong/mbpa.hpp>
#include <infty/lifelong/meta_mbpa.hpp>

#include "io/temporary_folder.hpp"
#include "lifelong/predictor_case.hpp"
#include "support/catch.hpp"

using infty::Example;
using infty::Index;

namespace faiss_episodes {

/// FAISS's search through all keys, which an empty memory begins with.
struct FlatSearch : infty::FaissIndex {
  explicit FlatSearch(const infty::Datastore<float>& store)
      : FaissIndex(store, {.kind = infty::IndexKind::flat}) {}
};

using Memory = infty::EpisodicMemory<float, infty::EigenBackend, FlatSearch>;
using Model = decltype(infty::tests::small_classifier<float>());

/// Examples [first, first + n) of a stream; their keys are drawn by their numbers.
template <class M>
void offer(M& memory, Index first, Index n) {
  std::vector<float> keys;
  std::vector<Example> examples;
  for (Index i = first; i < first + n; ++i) {
    infty::Random random(7, static_cast<std::uint64_t>(i));
    for (int k = 0; k < 4; ++k) keys.push_back(static_cast<float>(random.normal()));
    examples.push_back({{i}, {i % 2}});
  }
  memory.write(infty::Tensor<float>::from(infty::Shape{n, 4}, keys), examples);
}

infty::Tensor<float> asked() {
  std::vector<float> out;
  infty::Random random(8);
  for (int i = 0; i < 20 * 4; ++i) out.push_back(static_cast<float>(random.normal()));
  return infty::Tensor<float>::from(infty::Shape{20, 4}, out);
}

/// What a method answers that has learned a stream with a memory.
template <class Memory, class Method>
infty::Answers answers(Method method) {
  infty::Learner<Model, Memory> learner(infty::tests::small_classifier<float>(), 4,
                                        {.adam = {.learning_rate = .01}, .seed = 2});
  const std::vector<infty::LifelongTask> tasks{
      {"one", infty::tests::small_examples(60, 1), infty::tests::small_examples(30, 51)},
      {"two", infty::tests::small_examples(60, 2), infty::tests::small_examples(30, 52)}};
  infty::learn_stream(method, learner, tasks, 6);
  return method.answer(learner, infty::tests::small_examples(30, 60));
}

}  // namespace faiss_episodes

TEST_CASE("EpisodicMemory: by FAISS's flat search it finds what it finds exactly, in any state") {
  using namespace faiss_episodes;
  infty::EpisodicMemory<float> exact(4, {.capacity = 300, .seed = 3});
  Memory flat(4, {.capacity = 300, .seed = 3});
  CHECK(flat.nearest(asked(), 3) == exact.nearest(asked(), 3));  // none
  for (Index first = 0; first < 2000; first += 100) {  // most are replaced, and some swept
    offer(exact, first, 100);
    offer(flat, first, 100);
    REQUIRE(flat.nearest(asked(), 5) == exact.nearest(asked(), 5));
  }
  CHECK(flat.nearest(asked(), 1000) == exact.nearest(asked(), 1000));
  const infty::tests::TemporaryFolder folder;
  flat.save(folder.path() / "memory");
  Memory restored(4, {.capacity = 300, .seed = 3});
  restored.load(folder.path() / "memory");
  CHECK(restored.nearest(asked(), 5) == exact.nearest(asked(), 5));
}

TEST_CASE("EpisodicMemory: methods that ask for the nearest learn and answer by FAISS's, too") {
  using namespace faiss_episodes;
  const infty::SparseReplayConfig replay{.interval = 12, .rate = .5};
  const infty::LocalAdaptationConfig local{.neighbours = 4, .steps = 3};
  CHECK(answers<Memory>(infty::Mbpa(replay, local)) ==
        answers<infty::EpisodicMemory<float>>(infty::Mbpa(replay, local)));
  CHECK(answers<Memory>(infty::MetaMbpa<Model>(replay, local, 2)) ==
        answers<infty::EpisodicMemory<float>>(infty::MetaMbpa<Model>(replay, local, 2)));
}
