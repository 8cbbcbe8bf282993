# For the scripts that start a PROGRAM on ranks, by MPIEXEC and its NUMPROC, in a FOLDER. Open MPI, of whatever version,
# starts as many as it is asked for, and as root as well.
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
set(ENV{PRTE_MCA_rmaps_default_mapping_policy} :oversubscribe)
execute_process(COMMAND "${MPIEXEC}" --version OUTPUT_VARIABLE launcher ERROR_VARIABLE launcher)

# on_ranks(RANKS STATUS OPTION...): the program on so many ranks, which must end with this status. What it says on standard
# error is in errors, what they print in printed.
function(on_ranks ranks wanted)
  execute_process(
    COMMAND "${MPIEXEC}" ${NUMPROC} ${ranks} "${PROGRAM}" ${ARGN}
    WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE errors TIMEOUT 300)
  if(NOT status MATCHES "^${wanted}$")
    message(FATAL_ERROR "${ranks} ranks of ${PROGRAM} ${ARGN}: status ${status}, not ${wanted}\n${errors}")
  endif()
  set(printed "${printed}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

# on_different_ranks(WHERE OPTION OPTION...): the program on two ranks, the second of which works in a folder of its own and
# has an option more, or none; if `other` is set, it is that command; they must fail.
function(on_different_ranks where option)
  if(NOT other)
    set(other "${PROGRAM}")
  endif()
  execute_process(
    COMMAND "${MPIEXEC}" ${NUMPROC} 1 "${PROGRAM}" ${ARGN} : ${NUMPROC} 1 -wdir "${FOLDER}/${where}" ${other} ${ARGN}
            ${option}
    WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors TIMEOUT 300)
  if(status EQUAL 0)
    message(FATAL_ERROR "two ranks of ${PROGRAM} ${ARGN}, one of ${other} in ${where} with ${option}, go well")
  endif()
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

# says(TEXT): so it is in errors, in one line.
function(says text)
  string(FIND "${errors}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the ranks do not say `${text}`:\n${errors}")
  endif()
endfunction()

# signal_rank(SIGNAL RANKS RANK CONDITION OPTION...): sends a signal to one rank when the shell's condition holds; all must
# end within ten seconds, and not well, unless may_end is set: with what is in status, what they say in errors. For MEMORY in
# the place of a signal it gets no more memory, by the library NO_MEMORY (no_memory.cpp).
function(signal_rank signal ranks rank condition)
  set(act "kill -${signal} $process")
  set(what "SIG${signal}")
  if(signal STREQUAL "MEMORY")
    set(act "touch no-memory-$process")
    set(what "no memory")
    set(ENV{LD_PRELOAD} "${NO_MEMORY}")
  endif()
  execute_process(
    COMMAND
      bash -c
      "\"$@\" >/dev/null & all=$!; for i in {1..1500}; do ${condition} && break; sleep .02; done
       ranks=$(pgrep -P $all)
       for level in 1 2; do  # of mpiexec, or of a proxy that it has for each machine
         for process in $ranks; do
           tr '\\0' '\\n' </proc/$process/environ | grep -qxE '(OMPI_COMM_WORLD_RANK|PMI_RANK|PMIX_RANK)=${rank}' && ${act} && level=0
         done
         [ $level = 0 ] && break
         ranks=$(pgrep -P $(echo $ranks | tr ' ' ,))
       done
       begin=$SECONDS; wait $all; status=$?; echo $((SECONDS - begin)); exit $status"
      signal_rank "${MPIEXEC}" ${NUMPROC} ${ranks} "${PROGRAM}" ${ARGN}
    WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status OUTPUT_VARIABLE took ERROR_VARIABLE errors TIMEOUT 120)
  unset(ENV{LD_PRELOAD})
  if(status MATCHES "timeout" OR (status EQUAL 0 AND NOT may_end))
    message(FATAL_ERROR "${what} to rank ${rank} of ${ranks}: status ${status}\n${errors}")
  endif()
  string(REGEX MATCH "[0-9]+" took "${took}")
  message(STATUS "${what} to rank ${rank} of ${ranks}: all end with ${status} after ${took} s")
  if(took GREATER 10)
    message(FATAL_ERROR "the others end after more than ten seconds")
  endif()
  set(status "${status}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()
