# A training that is killed, or interrupted, and started again each time has the log, the model and the
# results of one that was not, bit for bit.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/text.cmake")
set(sizes --level char --width 8 --layers 2 --heads 2 --feed-forward 12 --memory-length 8 --widths .1,.2
          --samples 8 --batch 3 --segment 6 --steps 80 --warmup 2 --evaluate-every 0 --sticky-bins 16
          --data text)
set(options --memory infty-sticky ${sizes})

function(words out threads)
  set(${out} train ${options} --out parts --save-every 1 --threads ${threads} PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts log.csv vocabulary.txt)
  same_results(whole parts results.json)
  same_tensors(whole/checkpoint.safetensors parts/checkpoint.safetensors)
  same_files(. parts notes.tmpl checkpoint.safetensors.tmpl)
endfunction()
function(clean)
  file(REMOVE_RECURSE "${FOLDER}/parts")
  # A user's own files stay.
  foreach(name notes.tmpl checkpoint.safetensors.tmpl)
    file(WRITE "${FOLDER}/${name}" "mine")
    file(WRITE "${FOLDER}/parts/${name}" "mine")
  endforeach()
endfunction()

kill_often("language_model train" train ${options} --out whole --save-every 1 --threads 1)

# Ctrl-C saves and says how to go on, as SIGTERM does; what is lost is nothing.
clean()
# What begins anew is no part of the command that goes on.
set(fresh --fresh)
set(least 5)
set(signals INT TERM)
set(statuses 130 143)
foreach(signal status IN ZIP_LISTS signals statuses)
  interrupt(${signal} ${status} "[ $(wc -l 2>/dev/null <parts/log.csv || echo 0) -gt ${least} ]" said
            train ${options} --out parts --save-every 1000 --pause .05 ${fresh})
  if(NOT said MATCHES "stopped behind step ([0-9]+) of 80, saved in parts; to go on: ")
    message(FATAL_ERROR "SIG${signal}: it says\n${said}")
  endif()
  set(step "${CMAKE_MATCH_1}")
  file(STRINGS "${FOLDER}/parts/log.csv" lines)
  list(LENGTH lines count)
  math(EXPR expected "${step} + 1")
  if(NOT count EQUAL expected OR NOT EXISTS "${FOLDER}/parts/checkpoint.safetensors")
    message(FATAL_ERROR "SIG${signal} behind step ${step} leaves ${count} lines in the log")
  endif()
  nothing_left()
  set(fresh)
  math(EXPR least "${step} + 5")
endforeach()
go_on("${said}")
compare()

# Steps of several segments, which are computed twice, with dropout; the state has a gradient.
set(sticky ${options})
set(options --memory xl --tokens recurrent --token-count 2 --dropout .1 --bptt 2 --replay true ${sizes})
kill_often("language_model train --bptt 2" train ${options} --out whole --save-every 1 --threads 1)
clean()
interrupt(INT 130 "[ $(wc -l 2>/dev/null <parts/log.csv || echo 0) -gt 5 ]" said
          train ${options} --out parts --save-every 1000 --pause .05)
nothing_left()
go_on("${said}")
compare()
set(options ${sticky})
file(REMOVE_RECURSE "${FOLDER}/whole")
run(0 ignored train ${options} --out whole --threads 1)

# By the clock alone: a killed run has a checkpoint.
clean()
interrupt(KILL 137 "[ $(wc -l 2>/dev/null <parts/log.csv || echo 0) -gt 5 ]" said
          train ${options} --out parts --save-every 1000 --save-minutes 1e-9 --pause .05)
if(NOT EXISTS "${FOLDER}/parts/checkpoint.safetensors")
  message(FATAL_ERROR "nothing was saved by the clock")
endif()
run(0 ignored train ${options} --out parts)
compare()

# Jobs that keep nothing end as cleanly.
interrupt(INT 130 "sleep 1" said generate --model parts --tokens 100000000)
if(NOT said MATCHES "stopped behind [0-9]+ of 100000000 tokens")
  message(FATAL_ERROR "generate, interrupted, says\n${said}")
endif()
file(WRITE "${FOLDER}/long" "")
foreach(i RANGE 1 1000)
  file(APPEND "${FOLDER}/long" "${text}")
endforeach()
interrupt(INT 130 "sleep 6" said evaluate --model parts --text long --batch 1)
if(NOT said MATCHES "stopped evaluating behind [0-9]+ of [0-9]+ tokens")
  message(FATAL_ERROR "evaluate, interrupted, says\n${said}")
endif()
if(NOT said MATCHES "text +token [0-9]+/[0-9]+  [0-9.e+]+ tokens/s  [0-9:s]+ left")
  message(FATAL_ERROR "evaluate shows no progress:\n${said}")
endif()

# The second signal does not wait for the end of the step.
clean()
execute_process(
  COMMAND
    bash -c
    "set -m; \"$@\" & for i in {1..1000}; do [ -s parts/log.csv ] && [ $(wc -l <parts/log.csv) -gt 1 ] && break; sleep .02; done; kill -INT $!; sleep .2; kill -INT $!; wait $!"
    twice "${PROGRAM}" train ${options} --out parts --save-every 1000 --pause 30
  WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE said TIMEOUT 60)
if(NOT status EQUAL 130 OR said MATCHES "to go on")
  message(FATAL_ERROR "two signals end with ${status}:\n${said}")
endif()
