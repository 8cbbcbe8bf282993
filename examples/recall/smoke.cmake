# cmake -DPROGRAM=... -DFOLDER=... -P smoke.cmake: the program, small, with every memory and task; a
# comparison that was interrupted goes on, with another number of jobs, to the same table.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/finished_runs.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(shape --symbols 3 --items 2 --copy-gap 5 --keys 3 --values 2 --pairs 2 --recall-gap 4 --lengths 12,20
          --width 8 --layers 1 --feed-forward 8 --parameters 0 --segment 4 --bytes 384 --widths .2 --samples 8 --sticky-bins 4
          --batch 3 --steps 3 --warmup 1 --evaluation-sequences 7 --mqar-lengths 16 --mqar-vocabulary 8
          --mqar-examples 6 --mqar-steps 3 --mqar-heads 2 --needle-trained 8 --needle-steps 3 --needle-rows 2 --distances 4,40)
set(tiny ${shape} --memories none,attention,xl,compressive,infty,linear --tasks copy,recall,sorting
         --rates 1e-3,1e-2 --seeds 4,5 --curve-tasks recall --curve-bytes 128,384,768)

run(0 whole ${tiny} --out whole --jobs 1)
if(NOT errors MATCHES "runs to do: 84, about")
  message(FATAL_ERROR "it does not say how long it takes:\n${errors}")
endif()
foreach(memory none xl compressive infty linear)
  if(NOT whole MATCHES "\n\\| ${memory} \\| [0-9]+ \\| [-0-9]+ \\| [0-9]+ \\| 0\\.[0-9]+ ± [0-9.]+ \\(")
    message(FATAL_ERROR "the table has no row of ${memory}:\n${whole}")
  endif()
endforeach()
foreach(task "copy 5" "recall 4" "sorting 12" "sorting 20" "guessing" "the whole sequence")
  if(NOT whole MATCHES "${task}")
    message(FATAL_ERROR "the table has no ${task}:\n${whole}")
  endif()
endforeach()

# What is compared was fixed beforehand: four tasks, seven pairs; and two seeds tell nothing apart.
string(REGEX MATCHALL "\\| no verdict: 2 seeds \\|" verdicts "${whole}")
list(LENGTH verdicts count)
if(NOT count EQUAL 28 OR NOT whole MATCHES "\\| sorting 20 \\| linear - xl \\|")
  message(FATAL_ERROR "${count} comparisons, not 28:\n${whole}")
endif()

# The figure has every memory at every size that it can have, no point twice.
file(STRINGS "${FOLDER}/whole/curves.csv" lines)
foreach(memory xl compressive infty linear)
  set(points ${lines})
  list(FILTER points INCLUDE REGEX "^recall 4,${memory},(384|768),.*,2$")
  list(LENGTH points count)
  if(NOT count EQUAL 2)
    message(FATAL_ERROR "curves.csv has ${count} points of ${memory}:\n${lines}")
  endif()
endforeach()
find_program(gnuplot gnuplot)
if(gnuplot AND NOT EXISTS "${FOLDER}/whole/curves.png")
  message(FATAL_ERROR "no curves.png:\n${errors}")
endif()

# A few runs are there; the others are done now, and none twice.
runs_of(whole runs)
list(LENGTH runs count)
if(NOT count EQUAL 84) # 6 memories, 4 tasks, 2 rates and a seed: 72; 4 memories at 2 sizes, less 2: 12
  message(FATAL_ERROR "there are ${count} runs:\n${runs}")
endif()
copy_runs(31 whole parts)
run(0 parts ${tiny} --out parts --jobs 2)
same("the table" "${whole}" "${parts}")
foreach(name table.md curves.csv)
  file(READ "${FOLDER}/whole/${name}" one)
  file(READ "${FOLDER}/parts/${name}" other)
  same("${name}" "${one}" "${other}")
endforeach()
run(0 again ${tiny} --out whole)
same("the table" "${whole}" "${again}")
if(errors MATCHES "runs to do")
  message(FATAL_ERROR "something is done again:\n${errors}")
endif()

# What is compared may change: of a run that is there, nothing is done again.
run(0 again ${shape} --out whole --memories xl --tasks copy --rates 1e-2 --seeds 5)
if(again MATCHES "±" OR NOT again MATCHES "\n\\| xl [^\n]*\\(0.01\\) \\|\n$")
  message(FATAL_ERROR "one run of one memory is printed as\n${again}")
endif()

# A folder of before there were contractions to choose from goes on.
file(READ "${FOLDER}/whole/settings.json" settings)
string(REGEX REPLACE "  \"(block|contraction|parameters|power|test-sequences|waiting)\": [^\n]*\n" "" settings "${settings}")
string(REGEX REPLACE "  \"(powers|taus|test-lengths)\": \\[[^]]*\\],\n" "" settings "${settings}")
if(settings MATCHES "parameters|power|taus|block|contraction|test-|waiting")
  message(FATAL_ERROR "these are no older settings:\n${settings}")
endif()
file(WRITE "${FOLDER}/whole/settings.json" "${settings}")
run(0 again ${tiny} --out whole)
same("the table" "${whole}" "${again}")
if(errors MATCHES "runs to do")
  message(FATAL_ERROR "something is done again of an older folder:\n${errors}")
endif()

# Other contractions, and the best of several taus as their rival. One tau is that of the plain memory, whose
# runs it has; all are tested on other lengths, too.
set(contracted infty-power,infty-uniform,infty-mixed,infty-learned,infty-sticky-uniform)
string(REPLACE "--lengths;12,20" "--lengths;12" short "${shape}")
string(REPLACE "--bytes;384" "--bytes;1024" short "${short}")
run(0 swept ${short} --memories infty,infty-tau,infty-sticky-tau,${contracted} --tasks sorting
    --rates 1e-3,1e-2 --seeds 4,5 --taus .75,.9 --block 2 --test-lengths 12,40 --test-sequences 3
    --curve-tasks none --out swept)
foreach(pair "infty-power - infty-tau" "infty-uniform - infty-tau" "infty-mixed - infty-tau"
        "infty-learned - infty-tau" "infty-sticky-uniform - infty-sticky-tau")
  foreach(where "sorting 12" "sorting 12, at 12" "sorting 12, at 40")
    if(NOT swept MATCHES "\n\\| ${where} \\| ${pair} \\|")
      message(FATAL_ERROR "${pair} is not compared, ${where}:\n${swept}")
    endif()
  endforeach()
endforeach()
foreach(word infty-tau infty-power infty-sticky-tau infty-sticky-uniform)
  if(NOT swept MATCHES "\n\\| sorting 12 \\| ${word} at 40 - ${word} at 12 \\|")
    message(FATAL_ERROR "whether ${word} falls is not said:\n${swept}")
  endif()
endforeach()
string(REGEX MATCHALL "\\| no verdict: 2 seeds \\|" verdicts "${swept}")
list(LENGTH verdicts count)
if(NOT count EQUAL 22 # five with their rivals, at three lengths; seven with themselves
   OR NOT swept MATCHES "\n\\| infty-tau \\|[^\n]* ± [0-9.]+ \\([0-9.]+, tau 0\\.(75|9)\\) \\|\n"
   OR NOT swept MATCHES "\n\\| sorting 12, at \\| 12 \\| 40 \\|\n\\|---\\|---\\|---\\|\n\\| infty \\| 0\\.[0-9]+ ± ")
  message(FATAL_ERROR "the best of the taus, and other lengths:\n${swept}")
endif()
file(GLOB runs RELATIVE "${FOLDER}/swept/runs" "${FOLDER}/swept/runs/*-4.json")
list(LENGTH runs count)
if(NOT count EQUAL 18 # of seed 4, two rates each: six words, and of infty and of infty-sticky two taus and one
   OR NOT EXISTS "${FOLDER}/swept/runs/sorting-12-infty-tau-0.9-1024-0.01-4.json"
   OR NOT EXISTS "${FOLDER}/swept/runs/sorting-12-infty-sticky-1024-0.01-4.json"
   OR NOT EXISTS "${FOLDER}/swept/sorting-12.csv")
  message(FATAL_ERROR "${count} runs of seed 4:\n${runs}")
endif()

# What waits for its block may be attended to; a folder holds one way to read it.
set(one ${short} --memories infty-uniform,infty-learned --tasks sorting --rates 1e-2 --seeds 4 --block 2
        --curve-tasks none --out attended)
run(0 attended ${one} --waiting attended)
foreach(memory infty-uniform infty-learned)
  if(NOT attended MATCHES "\n\\| ${memory} \\|[^\n]* 0\\.[0-9]+")
    message(FATAL_ERROR "the table has no row of ${memory}:\n${attended}")
  endif()
endforeach()
refused("holds a comparison with --waiting \"attended\", not \"written\"" ${one})

# Every word that stands for a model; no state has more bytes than the plain one's.
string(REPLACE "--bytes;384" "--bytes;1024" larger "${shape}")
run(0 all ${larger} --tasks recall,mqar,needle --rates 1e-2 --seeds 4 --curve-tasks none --out all --jobs 4)
string(REGEX MATCH "\n\\| xl \\| ([0-9]+)" row "${all}")
set(allowed "${CMAKE_MATCH_1}")
string(REGEX MATCHALL "\n\\| [a-z][-a-z0-9]* \\| [0-9]+ \\|" rows "${all}")
list(LENGTH rows count)
if(count LESS 22)
  message(FATAL_ERROR "only ${count} memories:\n${all}${errors}")
endif()
foreach(row IN LISTS rows)
  string(REGEX MATCH "\\| ([-a-z0-9]+) \\| ([0-9]+)" row "${row}")
  if(CMAKE_MATCH_2 GREATER allowed)
    message(FATAL_ERROR "${CMAKE_MATCH_1} has ${CMAKE_MATCH_2} bytes, more than ${allowed}")
  endif()
endforeach()

if(NOT all MATCHES "\\| recall 4 \\| mqar 16 \\| needle \\|")
  message(FATAL_ERROR "the tasks are\n${all}")
endif()
file(STRINGS "${FOLDER}/all/needle.csv" lines)
list(LENGTH lines points)
math(EXPR wanted "2 * (${count} + 1) + 1") # of each memory and of the whole sequence, and a header
if(NOT points EQUAL wanted)
  message(FATAL_ERROR "needle.csv has ${points} lines, not ${wanted}:\n${lines}")
endif()

run(0 mix ${shape} --memories xl --tasks mqar-mix,copy --rates 1e-2 --mqar-mix-rates 2e-2 --seeds 4
    --curve-tasks mqar-mix --curve-bytes 384 --out mix)
file(GLOB runs RELATIVE "${FOLDER}/mix/runs" "${FOLDER}/mix/runs/*.json")
if(NOT mix MATCHES "\\| mqar mix \\|" OR NOT EXISTS "${FOLDER}/mix/curves.csv" OR
   NOT "${runs}" STREQUAL "copy-5-xl-384-0.01-4.json;mqar-mix-xl-384-0.02-4.json")
  message(FATAL_ERROR "the mixture of lengths: ${runs}\n${mix}")
endif()

# The authors' settings are defaults: what is said beside them counts.
run(0 published ${shape} --zoology true --memories none --tasks copy --rates 2e-3 --seeds 4 --curve-tasks none
    --out published)
file(READ "${FOLDER}/published/settings.json" settings)
string(JSON heads GET "${settings}" heads)
string(JSON layers GET "${settings}" layers)
string(JSON rates LENGTH "${settings}" rates)
if(NOT "${heads} ${layers} ${rates}" STREQUAL "1 1 1")
  message(FATAL_ERROR "--zoology beside other options: heads, layers, rates are ${heads}, ${layers}, ${rates}")
endif()
if(NOT settings MATCHES "\"mqar-mix-rates\": \\[[ \n]*0\\.001,[ \n]*0\\.0031622777,[ \n]*0\\.01,[ \n]*0\\.031622777[ \n]*\\]")
  message(FATAL_ERROR "--zoology has not the mixture's rates of its authors:\n${settings}")
endif()

# Feeds are so wide that models have as many parameters, but for half of what a unit has, 17.
string(REPLACE "--parameters;0" "--parameters;3000" even "${shape}")
run(0 even ${even} --memories none,xl,compressive,infty,linear,engram --tasks copy --rates 1e-2 --seeds 4
    --curve-tasks none --out even)
string(REGEX MATCHALL "\n\\| [a-z]+ \\| [0-9]+ \\| [-0-9]+ \\| [0-9]+ \\|" rows "${even}")
set(counts ${rows})
list(TRANSFORM counts REPLACE "^.* ([0-9]+) \\|$" "\\1")
list(LENGTH counts count)
list(SORT counts COMPARE NATURAL)
list(GET counts 0 least)
list(GET counts -1 most)
math(EXPR apart "${most} - ${least}")
if(NOT count EQUAL 6 OR apart GREATER 17 OR least LESS 2900 OR most GREATER 3100)
  message(FATAL_ERROR "3,000 parameters are not those of all models:\n${even}")
endif()

# What cannot be as small is left out, and the others are not.
string(REPLACE "--bytes;384" "--bytes;64" two "${shape}")
run(0 small ${two} --memories xl,infty --tasks copy --rates 1e-2 --seeds 4 --curve-tasks none --out small)
if(NOT errors MATCHES "infty is left out at 64 bytes" OR small MATCHES "infty" OR NOT small MATCHES "\n\\| xl ")
  message(FATAL_ERROR "two vectors are too few for infty:\n${small}${errors}")
endif()

# A run that fails is named, and takes no other with it.
file(WRITE "${FOLDER}/failed/runs/copy-5-xl-384-0.01-4.safetensors" "damaged")
run(1 failed ${shape} --memories none,xl --tasks copy --rates 1e-2 --seeds 4 --curve-tasks none --out failed)
if(NOT errors MATCHES "the run copy-5-xl-384-0.01-4: " OR NOT errors MATCHES "runs that failed: 1"
   OR NOT failed MATCHES "\n\\| none \\|")
  message(FATAL_ERROR "of a damaged checkpoint:\n${failed}${errors}")
endif()

refused("holds a comparison with --clip 1.0, not 2.0" ${tiny} --out whole --clip 2)
refused("foo not in" --memories foo)
refused("--seeds has 1 twice" --seeds 1,1 --out other)
refused("--bytes is 8: they are less than a vector in every layer" --bytes 8 --out other)
refused("keys is 3: it must be at least pairs = 4" --keys 3 --out other)
file(WRITE "${FOLDER}/foreign/runs/a.json" "a,b\n")
refused("runs/a.json is damaged" ${tiny} --out foreign)
