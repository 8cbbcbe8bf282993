# A twin is one file: compiled as it is, it must pass; compiled with -DBAD, it must fail, and each
# text of its lines `// expect: TEXT` must stand in what the compiler says.
set(command "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE}")
foreach(folder IN LISTS EIGEN)
  list(APPEND command -isystem "${folder}")
endforeach()

execute_process(COMMAND ${command} "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE said)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the good twin of ${SOURCE} does not compile:\n${said}")
endif()

execute_process(COMMAND ${command} -DBAD "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE said)
if(status EQUAL 0)
  message(FATAL_ERROR "the bad twin of ${SOURCE} compiles")
endif()

file(STRINGS "${SOURCE}" expectations REGEX "^// expect: ")
if(NOT expectations)
  message(FATAL_ERROR "${SOURCE} expects no text")
endif()
foreach(expectation IN LISTS expectations)
  string(REPLACE "// expect: " "" text "${expectation}")
  string(FIND "${said}" "${text}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "the error for ${SOURCE} lacks \"${text}\":\n${said}")
  endif()
endforeach()
