# Finds PACKAGE or stops with one line that says how to get it. Further arguments go to find_package.
macro(infty_find package hint)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "infty: ${package} is missing: ${hint}")
  endif()
endmacro()
