# A comparison that is killed and started again keeps the runs that were finished, goes on with the others,
# and ends with the table of one that was not.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
set(options --symbols 3 --items 2 --copy-gap 5 --keys 3 --values 2 --pairs 2 --recall-gap 4 --lengths 12
            --width 8 --layers 1 --feed-forward 8 --segment 4 --vectors 12 --widths .2 --samples 8
            --sticky-bins 4 --batch 3 --steps 12 --warmup 1 --rates 1e-3,1e-2 --seeds 4,5
            --evaluation-sequences 7)

function(words out threads)
  keeps_runs(parts)
  set(${out} ${options} --out parts --jobs ${threads} --save-every 1 PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts table.md settings.json)
  same_runs(whole parts)
endfunction()
function(clean)
  forget_runs()
  file(REMOVE_RECURSE "${FOLDER}/parts")
endfunction()

now(begin)
run(0 ignored ${options} --out whole --jobs 1 --save-every 1)
now(end)
math(EXPR milliseconds "${end} - ${begin}")
kill_often("recall" ${milliseconds})

# Ctrl-C saves inside of a run, and says how to go on.
string(REPLACE "--steps;12" "--steps;400" long "${options}")
file(REMOVE_RECURSE "${FOLDER}/whole")
run(0 ignored ${long} --out whole --jobs 2 --tasks copy --memories xl,infty)
clean()
interrupt(INT 130 "ls parts/unfinished-*.safetensors >/dev/null 2>&1" said
          ${long} --out parts --jobs 2 --tasks copy --memories xl,infty --save-every 3)
if(NOT said MATCHES "stopped, all saved in parts; to go on: ")
  message(FATAL_ERROR "SIGINT: it says\n${said}")
endif()
nothing_left()
file(GLOB saved "${FOLDER}/parts/unfinished-*.safetensors")
if(NOT saved)
  message(FATAL_ERROR "SIGINT has saved no run")
endif()
go_on("${said}")
compare()
