# What the tests of packages have in common. run(COMMAND...) stops, and shows what was printed, if the
# command fails; what was printed is in `said`.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message("${said}")
    message(FATAL_ERROR "failed: ${command}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

# What test_package's program must have printed.
function(check_remembered)
  if(NOT said MATCHES "infty ${VERSION}: 64 vectors read as \\[1, 8, 16\\]")
    message("${said}")
    message(FATAL_ERROR "the program of test_package did not say what it should")
  endif()
endfunction()
