# Runs that are killed and started again go on, and end with the table of those that nobody disturbed.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
set(options --nouns 3 --adjectives 2 --verbs 2 --clauses 2 --modifiers 1 --width 8 --layers 1 --heads 2
            --feed-forward 8 --token-count 2 --slots 3 --self-slots 2 --batch 3 --steps 12 --warmup 1 --seeds 4,5
            --evaluation-sequences 7 --beam 2)

function(words out threads)
  set(${out} ${options} --out parts --jobs ${threads} --save-every 1 PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts table.md settings.json)
  file(GLOB left "${FOLDER}/parts/unfinished-*")
  if(left)
    message(FATAL_ERROR "finished runs have left ${left}")
  endif()
endfunction()
function(clean)
  file(REMOVE_RECURSE "${FOLDER}/parts")
endfunction()

now(begin)
run(0 ignored ${options} --out whole --jobs 1 --save-every 1)
now(end)
math(EXPR milliseconds "${end} - ${begin}")
kill_often("translation" ${milliseconds})

# Ctrl-C saves inside of a run, and says how to go on.
string(REPLACE "--steps;12" "--steps;400" long "${options}")
file(REMOVE_RECURSE "${FOLDER}/whole")
run(0 ignored ${long} --out whole --jobs 2 --forms plain,memsizer)
clean()
interrupt(INT 130 "ls parts/unfinished-*.safetensors >/dev/null 2>&1" said
          ${long} --out parts --jobs 2 --forms plain,memsizer --save-every 3)
if(NOT said MATCHES "stopped, all saved in parts; to go on: ")
  message(FATAL_ERROR "SIGINT: it says\n${said}")
endif()
nothing_left()
go_on("${said}")
compare()
