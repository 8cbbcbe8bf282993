# A comparison that is killed and started again keeps the runs that were finished, does the others, and ends with
# the table of one that was not.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
set(options --tasks 3 --classes 2 --training 60 --test 10 --length 5 --width 8 --heads 2 --feed-forward 8 --batch 4
            --interval 8 --neighbours 3 --adaptation-steps 2 --seeds 4,5 --orders 1
            --methods sequential,replay,mbpa++,meta-mbpa --pretrain 300 --pretrain-batch 4)

function(words out threads)
  keeps_runs(parts)
  set(${out} ${options} --out parts --jobs ${threads} PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts table.md settings.json matrix.csv)
  same_runs(whole parts)
endfunction()

kill_often("lifelong" ${options} --out whole --jobs 1)

# Ctrl-C ends it, and the command that it says goes on.
clean()
string(REPLACE "--training;60" "--training;2000" long "${options}")
interrupt(INT 130 "ls parts/runs/*.json >/dev/null 2>&1" said ${long} --out parts --jobs 2)
if(NOT said MATCHES "stopped, all saved in parts; to go on: ")
  message(FATAL_ERROR "SIGINT: it says\n${said}")
endif()
nothing_left()
go_on("${said}")

# How far it has come is said inside of the first task, and before it where it is noted first what is forgotten; there
# Ctrl-C is heard, too. So it is while questions are answered, of which each may adapt the model for long.
set(lifelong "${PROGRAM}")
set(PROGRAM bash)
set(usual --methods sequential --training 50000)
set(forgetting ${usual} --writing forgetting)
set(answers --methods mbpa --adaptation-steps 1000 --test 5000 --training 20 --spans 3)
foreach(long IN ITEMS usual forgetting answers)
  clean()
  file(REMOVE "${FOLDER}/told")
  now(begin)
  interrupt(INT 130 "grep -q 'runs *step [1-9]' told 2>/dev/null" ignored -c "exec \"$@\" 2>told" told "${lifelong}"
            --tasks 2 ${${long}} --orders 1 --seeds 1 --out parts)
  now(end)
  math(EXPR seconds "(${end} - ${begin}) / 1000")
  file(READ "${FOLDER}/told" told)
  if(seconds GREATER 60 OR NOT told MATCHES "runs +step [1-9]")
    message(FATAL_ERROR "${${long}}, which SIGINT has ended in ${seconds} s, says\n${told}")
  endif()
endforeach()
