# Every relative link and anchor of the pages leads to something: see links.awk.
#   cmake -DSOURCE=... -DFOLDER=... -P links.cmake
find_program(AWK awk REQUIRED)
file(GLOB pages RELATIVE "${SOURCE}" "${SOURCE}/*.md" "${SOURCE}/docs/*.md")
file(GLOB_RECURSE files LIST_DIRECTORIES true RELATIVE "${SOURCE}" "${SOURCE}/docs/*" "${SOURCE}/tests/*"
     "${SOURCE}/examples/*" "${SOURCE}/benchmarks/*" "${SOURCE}/include/*" "${SOURCE}/cuda/*")
file(GLOB top RELATIVE "${SOURCE}" "${SOURCE}/*")
list(TRANSFORM files PREPEND "./")
list(TRANSFORM top PREPEND "./")
list(JOIN files "\n" there)
list(JOIN top "\n" more)
file(MAKE_DIRECTORY "${FOLDER}")
file(WRITE "${FOLDER}/there" "${there}\n${more}\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C "${AWK}" -v "there=${FOLDER}/there" -f "${CMAKE_CURRENT_LIST_DIR}/links.awk" ${pages}
                WORKING_DIRECTORY "${SOURCE}" RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "links of README.md and docs lead nowhere")
endif()
