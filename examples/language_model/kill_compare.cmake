# The same of a comparison: killed with its trainings, or interrupted, it goes on to the same models.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/text.cmake")
set(options --level char --width 8 --layers 1 --heads 2 --feed-forward 12 --memory-length 8 --widths .1,.2
            --samples 8 --batch 3 --segment 6 --steps 40 --warmup 2 --evaluate-every 0 --sticky-bins 16
            --data text --memories xl,infty --seeds 2)

function(words out threads)
  set(${out} compare ${options} --out parts --save-every 1 --threads ${threads} --jobs ${threads} PARENT_SCOPE)
endfunction()
function(compare)
  foreach(run xl-1 xl-2 infty-1 infty-2)
    same_files(whole/${run} parts/${run} log.csv vocabulary.txt)
    same_results(whole/${run} parts/${run} results.json)
    same_tensors(whole/${run}/checkpoint.safetensors parts/${run}/checkpoint.safetensors)
  endforeach()
endfunction()

kill_often("language_model compare" compare ${options} --out whole --save-every 1)

clean()
set(signals INT TERM TERM)
set(statuses 130 143 143)
set(groups one one all)
# A training that has its lock minds signals once it writes its log.
set(training "[ -n \"$(for l in parts/*/.lock; do find $(dirname $l)/log.csv -newer $l; done 2>/dev/null)\" ]")
foreach(signal status group IN ZIP_LISTS signals statuses groups)
  set(to_all "")
  if(group STREQUAL all)  # each run is told once, and saves what it has not saved before
    set(to_all "-")
    clean()
  endif()
  interrupt(${signal} ${status} "${training}" said
            compare ${options} --out parts --save-every 1000 --jobs 1)
  if(NOT said MATCHES "stopped, all saved in parts; to go on: ")
    message(FATAL_ERROR "SIG${signal}: it says\n${said}")
  endif()
  nothing_left()
  file(GLOB saved "${FOLDER}/parts/*/checkpoint.safetensors")
  if(NOT saved)
    message(FATAL_ERROR "SIG${signal}: no run has saved:\n${said}")
  endif()
endforeach()
go_on("${said}")
compare()
