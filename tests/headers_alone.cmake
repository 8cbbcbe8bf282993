# Compiles every header alone, and sees that each was: cmake -DBUILD=FOLDER -DFOLDER=FOLDER -DHEADERS=LIST -P
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --target headers_alone RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "A header does not compile alone")
endif()
# A target may be up to date without having compiled what it is to.
file(GLOB_RECURSE objects RELATIVE "${FOLDER}" "${FOLDER}/headers_above_*/alone/*")
string(REGEX REPLACE "headers_above_[a-z]+[.]dir/alone/" "" objects "${objects}")
foreach(header IN LISTS HEADERS)
  string(REPLACE ".hpp" ".cpp" source "${header}")
  if(NOT "${source}.o" IN_LIST objects AND NOT "${source}.obj" IN_LIST objects)
    message(SEND_ERROR "${header} was not compiled alone")
  endif()
endforeach()
