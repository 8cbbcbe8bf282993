# cmake -DPROGRAM=... -DFOLDER=... -DMPIEXEC=... -DNUMPROC=-n [-DKILLS=N] -P restarts.cmake: training on ranks of which, at
# random moments, a random one is killed, stopped, told to end, or finds the disk full; support/on_ranks starts the rest
# again. Every run ends, in time, has lost no more than a checkpoint's interval, and makes what one makes that nobody
# disturbs, bit for bit.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/tiny_on_ranks.cmake")
set(on_ranks "${CMAKE_CURRENT_LIST_DIR}/../support/on_ranks")
set(ENV{OMP_NUM_THREADS} 1)
set(options train --memory infty-sticky ${tiny} --steps 50 --evaluate-every 20 --shards 8 --bucket 25)
run(0 ignored ${options} --out one)

# What it refuses, and what it does not start again.
function(starts wanted text)
  execute_process(COMMAND "${on_ranks}" ${ARGN} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status OUTPUT_VARIABLE printed
                  ERROR_VARIABLE errors TIMEOUT 100)
  string(FIND "${errors}" "${text}" at)
  if(NOT status EQUAL wanted OR at EQUAL -1)
    message(FATAL_ERROR "on_ranks ${ARGN}: status ${status}, not ${wanted}, or not `${text}`:\n${errors}")
  endif()
  set(printed "${printed}" PARENT_SCOPE)
endfunction()
starts(2 "--restarts is 'x': it must be a number" --restarts x -n 2 true)
starts(2 "-n is '0': it must be a number of ranks" -n 0 true)
starts(2 "-n is '': it must be a number of ranks" true)
starts(2 "there is no program" -n 2)
starts(2 "--host is 'a': it must be NAME:SLOTS,..." -n 2 --host a true)
starts(0 "" -n 2 true)
starts(143 "" -n 2 sh -c "exit 143")
starts(3 "it has ended with status 3, after 8 restarts" --restarts 08 -n 1 sh -c "exit 3")
starts(3 "it has ended with status 3, after 2 restarts" --restarts 2 -n 3
       sh -c "echo $OMPI_COMM_WORLD_SIZE && sleep .3 && exit 3")
string(REGEX MATCHALL "[0-9]" sizes "${printed}")
list(REMOVE_DUPLICATES sizes)
same("what ranks were started on" "3;2;1" "${sizes}")

# Ctrl-C in a terminal is SIGINT to all of its process group: ranks are told to end once, and save.
file(WRITE "${FOLDER}/saves" [=[
trap 'sleep .2; touch saved-$OMPI_COMM_WORLD_RANK; exit 143' TERM
touch there-$OMPI_COMM_WORLD_RANK
while :; do sleep .1; done
]=])
file(WRITE "${FOLDER}/interrupt" [=[
set -m
"$1" -n 2 bash saves & all=$!
for i in {1..1500}; do [ -e there-0 ] && [ -e there-1 ] && break; sleep .02; done
kill -INT -- -$all
wait $all
]=])
set(ENV{OMPI_MCA_odls_base_sigkill_timeout} 2)  # Open MPI's second is too short for them on a loaded machine
execute_process(COMMAND bash interrupt "${on_ranks}" WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status ERROR_VARIABLE errors
                OUTPUT_QUIET TIMEOUT 100)
if(status EQUAL 0 OR errors MATCHES "restart" OR NOT EXISTS "${FOLDER}/saved-0" OR NOT EXISTS "${FOLDER}/saved-1")
  message(FATAL_ERROR "on_ranks, interrupted as by a terminal: status ${status}, or ranks have not saved:\n${errors}")
endif()
unset(ENV{OMPI_MCA_odls_base_sigkill_timeout})

# Of several hosts those count that still answer. Neither mpirun nor a login is there: these stand for them.
file(WRITE "${FOLDER}/bin/mpirun" "#!/bin/sh\nprintf '%s\\n' \"$*\"\nexit 3\n")
file(WRITE "${FOLDER}/bin/login" "#!/bin/sh\n[ \"$1\" != second ]\n")
file(CHMOD "${FOLDER}/bin/mpirun" "${FOLDER}/bin/login" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(path "$ENV{PATH}")
set(ENV{PATH} "${FOLDER}/bin:${path}")
set(ENV{OMPI_MCA_plm_rsh_agent} "${FOLDER}/bin/login")
starts(3 "second does not answer any more" --restarts 1 -n 10 --host first:4,second:2,third:4 program --fresh --out x)
same("the hosts of each start" "${printed}"
     "-n 10 --host first:4,second:2,third:4 program --fresh --out x\n-n 8 --host first:4,third:4 program --out x\n")
starts(2 "no host answers any more" -n 2 --host second:2 program)
set(ENV{PATH} "${path}")
unset(ENV{OMPI_MCA_plm_rsh_agent})

# One after the other in a run, until it is finished; then anew on another number of ranks.
set(signalled 0)
set(compared 0)
set(longest 0)
set(lost 0)
foreach(kind KILL STOP TERM FULL LAST)
  set(of_${kind} 0)
endforeach()
while(signalled LESS KILLS)
  file(REMOVE_RECURSE "${FOLDER}/parts")
  below(3 ranks)
  math(EXPR ranks "${ranks} + 2")
  math(EXPR left "${KILLS} - ${signalled}")
  if(left GREATER 4)  # or most of them would come to one rank that is left
    set(left 4)
  endif()
  string(RANDOM LENGTH 4 ALPHABET 123456789 seed)
  execute_process(
    COMMAND bash "${CMAKE_CURRENT_LIST_DIR}/../support/disturb" ${seed} ${left} parts 3 "${on_ranks}" --restarts 1000 -n ${ranks}
            env --ignore-signal=XFSZ "${PROGRAM}" ${options} --out parts --save-every 3 --pause .05 --silence 4
    WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE errors TIMEOUT 3600)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "on ${ranks} ranks, seed ${seed}: status ${status}\n${printed}${errors}")
  endif()
  compare(one parts)
  nothing_left()
  math(EXPR compared "${compared} + 1")
  message(STATUS "${ranks} ranks, seed ${seed}: the same, ${signalled} disturbed before")
  string(REGEX MATCHALL "(KILL|STOP|TERM|FULL|LAST) [0-9]+ [0-9]+" all "${printed}")
  foreach(one IN LISTS all)
    string(REPLACE " " ";" one "${one}")
    list(GET one 0 kind)
    list(GET one 1 milliseconds)
    math(EXPR of_${kind} "${of_${kind}} + 1")
    if(NOT kind STREQUAL "LAST")
      math(EXPR signalled "${signalled} + 1")
    endif()
    list(GET one 2 steps)
    if(milliseconds GREATER longest)
      set(longest ${milliseconds})
    endif()
    if(steps GREATER lost)
      set(lost ${steps})
    endif()
  endforeach()
endwhile()
message(STATUS "restarts: disturbed ${signalled} times: killed ${of_KILL}, stopped ${of_STOP}, told to end ${of_TERM}, disk full ${of_FULL}")
message(STATUS "stopped when all others had ended well, which mpirun waits for: ${of_LAST}")
message(STATUS "all ranks gone ${longest} ms later at most, ${lost} steps lost at most; ${compared} runs compared, no difference")
