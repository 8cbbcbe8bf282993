# The models that a run makes which is killed, or interrupted, and goes on by --resume each time are those
# of one that was not, bit for bit.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
set(options --symbols 4 --length 40 --segment 8 --short-term 8 --width 8 --heads 2 --feed-forward 12
            --basis 8 --widths .1,.2 --samples 12 --batch 4 --warmup 4 --evaluation-sequences 10 --bins 16
            --dropout .1 --models infty,sticky)

function(words out threads)
  set(how ${options} --steps 40 --save state)
  if(EXISTS "${FOLDER}/state")
    set(how --resume state)
  endif()
  set(${out} ${how} --out parts --save-every 1 --threads ${threads} PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts curves.csv attention.csv figure.gp)
  same_results(whole parts results.json)
  same_tensors(whole-state state)
endfunction()
function(clean)
  file(REMOVE_RECURSE "${FOLDER}/parts" "${FOLDER}/state")
endfunction()

now(begin)
run(0 ignored ${options} --steps 40 --save whole-state --out whole --save-every 1 --threads 1)
now(end)
math(EXPR milliseconds "${end} - ${begin}")
kill_often("sorting" ${milliseconds})

clean()
foreach(signal status IN ZIP_LISTS "INT;TERM" "130;143")
  clean()
  interrupt(${signal} ${status} "[ -e state ] && sleep .1" said
            ${options} --steps 100000 --save state --out parts --save-every 100000)
  if(NOT said MATCHES "stopped before step ([0-9]+) of infty; to go on: --resume state")
    message(FATAL_ERROR "SIG${signal}: it says\n${said}")
  endif()
  run(0 ignored ${options} --steps 100000 --save ${signal} --out parts --stop-at ${CMAKE_MATCH_1})
  same_tensors(${signal} state)
  nothing_left()
endforeach()
