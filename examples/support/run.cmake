# For the scripts that try a PROGRAM in a FOLDER.

# run(STATUS OUT OPTION...): the program in FOLDER, which must end with this status; what it prints.
function(run wanted out)
  execute_process(
    COMMAND "${PROGRAM}" ${ARGN}
    WORKING_DIRECTORY "${FOLDER}"
    RESULT_VARIABLE status
    OUTPUT_VARIABLE printed
    ERROR_VARIABLE errors)
  if(NOT status MATCHES "^${wanted}$")
    message(FATAL_ERROR "${PROGRAM} ${ARGN}: status ${status}, not ${wanted}\n${printed}${errors}")
  endif()
  set(${out} "${printed}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

function(same what a b)
  if(NOT a STREQUAL b)
    message(FATAL_ERROR "${what} differs:\n${a}\n${b}")
  endif()
endfunction()

# refused(TEXT OPTION...): the program ends with an error that says so.
function(refused text)
  run("[1-9][0-9]*" ignored ${ARGN})
  string(FIND "${errors}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${PROGRAM} ${ARGN} does not say `${text}`:\n${errors}")
  endif()
endfunction()
