# cmake -DPROGRAM=... -DFOLDER=... -P smoke.cmake: the program, small, with every memory and task; a
# comparison that was interrupted goes on, with another number of jobs, to the same table.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(tiny --symbols 3 --items 2 --copy-gap 5 --keys 3 --values 2 --pairs 2 --recall-gap 4 --lengths 12,20
         --width 8 --layers 1 --feed-forward 8 --segment 4 --vectors 12 --widths .2 --samples 8 --sticky-bins 4
         --batch 3 --steps 3 --warmup 1 --rates 1e-3,1e-2 --seeds 4,5 --evaluation-sequences 7)

run(0 whole ${tiny} --out whole --jobs 1)
foreach(memory none xl compressive lamemo infty infty-sticky)
  if(NOT whole MATCHES "\n\\| ${memory} \\| [0-9]+ \\| 0\\.[0-9]+ ± [0-9.]+ \\(")
    message(FATAL_ERROR "the table has no row of ${memory}:\n${whole}")
  endif()
endforeach()
foreach(task "copy 5" "recall 4" "sorting 12" "sorting 20" "guessing")
  if(NOT whole MATCHES "${task}")
    message(FATAL_ERROR "the table has no ${task}:\n${whole}")
  endif()
endforeach()

# What is compared was fixed beforehand: four tasks, nine pairs; and two seeds tell nothing apart.
string(REGEX MATCHALL "\\| no verdict: 2 seeds \\|" verdicts "${whole}")
list(LENGTH verdicts count)
if(NOT count EQUAL 36 OR NOT whole MATCHES "\\| sorting 20 \\| infty-sticky - xl \\|")
  message(FATAL_ERROR "${count} comparisons, not 36:\n${whole}")
endif()

# Equal bytes: no memory takes more than the plain one, nor much less.
string(REGEX MATCH "\n\\| xl \\| ([0-9]+)" row "${whole}")
set(allowed "${CMAKE_MATCH_1}")
math(EXPR least "${allowed} * 2 / 3")
foreach(memory compressive lamemo infty infty-sticky)
  string(REGEX MATCH "\n\\| ${memory} \\| ([0-9]+)" row "${whole}")
  if(CMAKE_MATCH_1 GREATER allowed OR CMAKE_MATCH_1 LESS least)
    message(FATAL_ERROR "${memory} has ${CMAKE_MATCH_1} bytes, not about ${allowed}")
  endif()
endforeach()

# A few runs are there; the others are done now, and none twice.
file(STRINGS "${FOLDER}/whole/runs.csv" lines)
list(LENGTH lines count)
if(NOT count EQUAL 73) # a header; 6 memories, 4 tasks, 2 rates and another seed
  message(FATAL_ERROR "runs.csv has ${count} lines")
endif()
list(SUBLIST lines 0 31 some)
list(JOIN some "\n" some)
file(WRITE "${FOLDER}/parts/runs.csv" "${some}\n")
run(0 parts ${tiny} --out parts --jobs 2)
same("the table" "${whole}" "${parts}")
if(NOT errors MATCHES "72 runs")
  message(FATAL_ERROR "not 72 runs:\n${errors}")
endif()
file(READ "${FOLDER}/parts/table.md" written)
same("table.md" "${whole}" "${written}")
run(0 again ${tiny} --out whole)
same("the table" "${whole}" "${again}")

# What is compared may change: of a run that is there, nothing is done again.
string(REPLACE "--seeds;4,5" "--seeds;5" fewer "${tiny}")
string(REPLACE "--rates;1e-3,1e-2" "--rates;1e-2" fewer "${fewer}")
run(0 again ${fewer} --out whole --memories xl --tasks copy)
if(again MATCHES "±" OR NOT again MATCHES "\n\\| xl [^\n]*\\(0.01\\) \\|\n$")
  message(FATAL_ERROR "one run of one memory is printed as\n${again}")
endif()

refused("holds a comparison with --clip 1.0, not 2.0" ${tiny} --out whole --clip 2)
refused("foo not in" --memories foo)
refused("--seeds has 1 twice" --seeds 1,1 --out other)
refused("--vectors is 2: infty needs more than their" --vectors 2 --memories infty --out other)
refused("keys is 3: it must be at least pairs = 4" --keys 3 --out other)
file(WRITE "${FOLDER}/foreign/runs.csv" "a,b\n")
refused("runs.csv is not what this writes" ${tiny} --out foreign)
