# cmake -DPROGRAM=... -DFOLDER=... -P smoke.cmake: the program, small, with every form; what was interrupted
# goes on to the same table, and a task that is easy enough is learned.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(tiny --nouns 3 --adjectives 2 --verbs 2 --clauses 2 --modifiers 1 --width 8 --layers 1 --heads 2
         --feed-forward 8 --token-count 2 --slots 3 --self-slots 2 --batch 3 --steps 4 --warmup 1 --seeds 4,5
         --evaluation-sequences 7 --beam 2)

run(0 whole ${tiny} --out whole --jobs 1)
foreach(form plain memory-transformer memctrl membottleneck memsizer memformer)
  if(NOT whole MATCHES "\n\\| ${form} \\| [0-9]+ \\| [0-9]+\\.[0-9]+ ± [0-9.]+ \\|")
    message(FATAL_ERROR "the table has no row of ${form}:\n${whole}")
  endif()
endforeach()
if(NOT whole MATCHES "\n\\| the commonest token of each place \\| 0 \\| \\| 0\\.[0-9]+ ± [0-9.]+ \\| ")
  message(FATAL_ERROR "the table does not tell what needs no model:\n${whole}")
endif()
if(NOT whole MATCHES "beam of 2")
  message(FATAL_ERROR "the table does not tell the beam:\n${whole}")
endif()

# Some runs are there; the others are done now, with another number of jobs.
run(0 some ${tiny} --out parts --jobs 2 --forms plain,memformer)
run(0 parts ${tiny} --out parts --jobs 2)
same("the table" "${whole}" "${parts}")
file(READ "${FOLDER}/parts/table.md" written)
same("table.md" "${whole}" "${written}")
file(STRINGS "${FOLDER}/parts/runs.csv" lines)
list(LENGTH lines count)
list(GET lines 0 names)
if(NOT count EQUAL 13)
  message(FATAL_ERROR "runs.csv has ${count} lines")
endif()
same("runs.csv" "${names}" "form,seed,parameters,loss,unseen,greedy_token,greedy_exact,beam_token,beam_exact,seconds")
run(0 again ${tiny} --out whole)
same("the table" "${whole}" "${again}")

# A language of few words is learned; no form has more than all right.
run(0 learned --nouns 2 --adjectives 1 --verbs 1 --clauses 1 --modifiers 0 --width 32 --layers 1 --heads 2
    --feed-forward 32 --token-count 2 --slots 4 --self-slots 4 --batch 16 --steps 250 --warmup 25 --seeds 1
    --rate 5e-3 --evaluation-sequences 32 --beam 2 --out learned --floor .9)
if(NOT learned MATCHES "\nOf the 32 sentences that are translated 0 are new; the others were in the training\\.\n")
  message(FATAL_ERROR "of a language of 16 sentences it is not told that none is new:\n${learned}")
endif()
# What is translated has not been in the training, but of a language whose 16 sentences all were.
file(STRINGS "${FOLDER}/learned/runs.csv" lines)
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^form," AND NOT line MATCHES "^[a-z-]+,1,[0-9]+,[0-9.e+-]+,0,")
    message(FATAL_ERROR "of a language of 16 sentences some are said to be new: ${line}")
  endif()
endforeach()
# Of 72 sentences a third or so are trained on.
string(REGEX REPLACE "--(clauses);2;--modifiers;1" "--clauses;1;--modifiers;0" short "${tiny}")
string(REPLACE "--batch;3" "--batch;8" short "${short}")
string(REPLACE "--evaluation-sequences;7" "--evaluation-sequences;20" short "${short}")
run(0 table ${short} --forms plain --out short)
if(table MATCHES "are new")
  message(FATAL_ERROR "all of 20 sentences are new, and the table says other things:\n${table}")
endif()
file(STRINGS "${FOLDER}/short/runs.csv" lines REGEX "^plain")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^plain,[45],[0-9]+,[0-9.e+-]+,20,")
    message(FATAL_ERROR "not all of 20 sentences are new: ${line}")
  endif()
endforeach()
refused("--floor is 1" ${tiny} --out whole --floor 1)

refused("holds a comparison with --clip 1.0, not 2.0" ${tiny} --out whole --clip 2)
refused("foo not in" --forms foo)
refused("--seeds has 1 twice" --seeds 1,1 --out other)
refused("--heads is 3: it must divide --width" --heads 3 --out other)
file(WRITE "${FOLDER}/foreign/runs/plain-4.json" "[]\n")
refused("foreign/runs/plain-4.json is 'array': an object is needed" ${tiny} --out foreign)
