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
  forget_runs()
  file(REMOVE_RECURSE "${FOLDER}/parts" "${FOLDER}/state")
endfunction()

kill_often("sorting" ${options} --steps 40 --save whole-state --out whole --save-every 1 --threads 1)

clean()
set(signals INT TERM)
set(statuses 130 143)
foreach(signal status IN ZIP_LISTS signals statuses)
  clean()
  interrupt(${signal} ${status} "[ -e state ] && sleep .1" said
            ${options} --steps 100000 --save state --out parts --save-every 100000)
  if(NOT said MATCHES "stopped before step ([0-9]+) of infty; to go on: [^\n]+ --resume state --out parts --save-every 100000")
    message(FATAL_ERROR "SIG${signal}: it says\n${said}")
  endif()
  run(0 ignored ${options} --steps 100000 --save ${signal} --out parts --stop-at ${CMAKE_MATCH_1})
  same_tensors(${signal} state)
  nothing_left()
endforeach()

# Without --save it is saved where it is stopped, goes on by the command that it says, and is not written
# over.
run(0 ignored ${options} --steps 400 --out whole)
clean()
interrupt(INT 130 "[ -e parts/.lock ] && sleep .2" said ${options} --steps 400 --out parts)
if(NOT said MATCHES "stopped [^\n]*; to go on: [^\n]+ --resume parts/interrupted.safetensors --out parts")
  message(FATAL_ERROR "SIGINT without --save: it says\n${said}")
endif()
run(1 ignored ${options} --steps 400 --out parts)
if(NOT errors MATCHES "parts/interrupted.safetensors is of a run that was stopped: --resume")
  message(FATAL_ERROR "a run that was stopped is begun anew:\n${errors}")
endif()
go_on("${said}")
same_files(whole parts curves.csv attention.csv figure.gp)
if(EXISTS "${FOLDER}/parts/interrupted.safetensors")
  message(FATAL_ERROR "a finished run leaves its checkpoint")
endif()

# A comparison at several lengths keeps the runs that were finished, and goes on inside of the others.
set(sizes --lengths 12,20 --symbols 6 --segment 4 --short-term 4 --basis 4 --widths .2 --samples 6 --sticky-bins 4
          --width 8 --layers 1 --heads 2 --feed-forward 8 --batch 3 --warmup 1 --evaluation-sequences 7
          --dropout .1)
set(often --steps 12 --seeds 4,5 --compression-rates 2,6)
set(once --steps 400 --seeds 4 --models compressive,infty --auxiliary-weights 1)
function(words out threads)
  keeps_runs(parts)
  set(${out} ${sizes} ${often} --out parts --jobs ${threads} --save-every 1 PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts table.md lengths.csv lengths.gp settings.json)
  same_runs(whole parts)
endfunction()

kill_often("sorting at several lengths" ${sizes} ${often} --out whole --jobs 1)

interrupt_runs(${sizes} ${once})
