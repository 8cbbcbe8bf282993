# For the scripts that start a PROGRAM on ranks of two hosts, which are two network namespaces with a slow link between them.
set(two_hosts "${CMAKE_CURRENT_LIST_DIR}/../../benchmarks/scaling/two_hosts")

# The script that asks for it returns where this machine lets nobody make them; what is wanting is said.
macro(need_two_hosts)
  if(NOT launcher MATCHES "Open MPI. 4")
    message(STATUS "two hosts: left out, for it needs the mpirun of Open MPI 4")
    return()
  endif()
  execute_process(
    COMMAND
      bash -c
      "[ $(id -u) = 0 ] && [ -c /dev/net/tun ] && command -v python3 && ip netns add infty-try && ip netns del infty-try && unshare --uts true"
    RESULT_VARIABLE can_be OUTPUT_QUIET ERROR_QUIET)
  if(NOT can_be EQUAL 0)
    message(STATUS "two hosts: left out, for they need root, /dev/net/tun, network namespaces (iproute2) and python3")
    return()
  endif()
endmacro()

# on_two_hosts(MILLISECONDS RANKS OPTION...): the program on so many ranks, half of them on either host, which must end well.
function(on_two_hosts milliseconds ranks)
  execute_process(
    COMMAND python3 "${two_hosts}" ${milliseconds} 0 -n ${ranks} "${PROGRAM}" ${ARGN} --threads 1
    WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE errors TIMEOUT 600)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ranks} ranks of ${PROGRAM} ${ARGN}, ${milliseconds} ms apart: status ${status}\n${errors}")
  endif()
  math(EXPR here "${ranks} / 2")
  says("${ranks} ranks, ${here} on this machine")
endfunction()
