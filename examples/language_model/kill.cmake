# cmake -DPROGRAM=... -DFOLDER=... [-DKILLS=N] -P kill.cmake: a training that is killed at N moments,
# random ones, and started again each time has the log and the model of one that was not.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
if(NOT KILLS)
  set(KILLS 3)
endif()
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
math(EXPR steps "40 * (${KILLS} + 1)")  # more than they do before the last of them
set(options --memory infty-sticky --level char --width 8 --layers 2 --heads 2 --feed-forward 12
            --memory-length 8 --widths .1,.2 --samples 8 --batch 3 --segment 6 --steps ${steps} --warmup 2
            --evaluate-every 0 --sticky-bins 16 --save-every 7 --threads 1)
set(text "")
foreach(i RANGE 1 150)
  string(APPEND text " The house of number ${i} , it 's said , opens at ${i} .\n")
endforeach()
file(WRITE "${FOLDER}/text" "${text}")
run(0 whole train ${options} --data text --out whole)
file(READ "${FOLDER}/whole/log.csv" expected)

set(killed 0)
while(killed LESS KILLS)
  string(RANDOM LENGTH 3 ALPHABET 0123456789 milliseconds)
  execute_process(
    COMMAND sh -c "\"$0\" \"$@\" & sleep 0.${milliseconds}; kill -9 $!; wait $!" "${PROGRAM}" train
            ${options} --data text --out parts --pause .012
    WORKING_DIRECTORY "${FOLDER}"
    RESULT_VARIABLE status
    OUTPUT_QUIET ERROR_QUIET)
  math(EXPR killed "${killed} + 1")
  if(EXISTS "${FOLDER}/parts/log.csv")
    file(STRINGS "${FOLDER}/parts/log.csv" lines)
    list(LENGTH lines count)
    message(STATUS "killed behind 0.${milliseconds} s, ${count} lines in the log")
  endif()
endwhile()
run(0 parts train ${options} --data text --out parts)
file(READ "${FOLDER}/parts/log.csv" log)
same("log.csv" "${expected}" "${log}")
string(REGEX REPLACE "[0-9]+ tokens/s" "" whole "${whole}")
string(REGEX REPLACE "[0-9]+ tokens/s" "" parts "${parts}")
same("the result" "${whole}" "${parts}")
file(GLOB left "${FOLDER}/parts/*.tmp*")
if(left)
  message(FATAL_ERROR "files were left: ${left}")
endif()
