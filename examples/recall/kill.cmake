# A comparison that is killed and started again keeps the runs that were finished, goes on with the others,
# and ends with the table of one that was not; a run that is killed alone takes no other with it.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
set(options --symbols 3 --items 2 --copy-gap 5 --keys 3 --values 2 --pairs 2 --recall-gap 4 --lengths 12
            --width 8 --layers 1 --feed-forward 8 --parameters 0 --segment 4 --bytes 384 --widths .2 --samples 8
            --sticky-bins 4 --batch 3 --steps 12 --warmup 1 --rates 1e-3,1e-2 --seeds 4,5
            --evaluation-sequences 7 --memories none,xl,infty,delta-net --tasks copy,recall,sorting
            --curve-tasks recall --curve-bytes 384,768)

function(words out threads)
  keeps_runs(parts)
  set(${out} ${options} --out parts --jobs ${threads} --save-every 1 PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts table.md settings.json)
  if(EXISTS "${FOLDER}/whole/curves.csv")
    same_files(whole parts curves.csv)
  endif()
  same_runs(whole parts)
endfunction()

kill_often("recall" ${options} --out whole --jobs 1 --save-every 1)

# Ctrl-C saves inside of runs, and says how to go on.
string(REPLACE "--steps;12" "--steps;400" long "${options}")
string(REPLACE "--memories;none,xl,infty,delta-net;--tasks;copy,recall,sorting" "--memories;xl,infty;--tasks;copy"
               long "${long}")
interrupt_runs(${long})

# A run that is killed is named, and the others are done; the same command does it, too, from its last
# checkpoint on. One that is stopped alone is saved.
foreach(signal KILL TERM)
  clean()
  execute_process(
    COMMAND
      bash -c
      "\"$@\" & for i in {1..1000}; do ${run_saved} && break; sleep .02; done; kill -${signal} $(cut -d' ' -f1 /proc/$!/task/$!/children); wait $!"
      killed "${PROGRAM}" ${long} --out parts --jobs 2 --save-every 3
    WORKING_DIRECTORY "${FOLDER}"
    RESULT_VARIABLE status
    OUTPUT_QUIET
    ERROR_VARIABLE said)
  if(NOT status EQUAL 1
     OR NOT said MATCHES "recall: the run copy-5-[-.a-z0-9]+: (it was ended by signal 9|a signal has stopped it)"
     OR NOT said MATCHES "runs that failed: 1; the same command tries them again")
    message(FATAL_ERROR "SIG${signal} to a run: ${status}, it says\n${said}")
  endif()
  file(READ "${FOLDER}/parts/table.md" table)
  if(NOT table MATCHES "Runs are missing")
    message(FATAL_ERROR "without a run the table is\n${table}")
  endif()
  nothing_left()
  run(0 ignored ${long} --out parts --jobs 2 --save-every 3)
  if(NOT errors MATCHES "runs to do: 1, about")
    message(FATAL_ERROR "not that run alone is done again:\n${errors}")
  endif()
  compare()
endforeach()
