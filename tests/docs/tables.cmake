# Tables of runs are those of the files beside them: see tables.awk.
#   cmake -DSOURCE=... -P tables.cmake
find_program(AWK awk REQUIRED)

# held_to(PAGE HEADING RUNS LEAST): the first table below the heading has so many cells of these runs at least.
function(held_to page heading runs least)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C "${AWK}" -v "heading=${heading}" -v "runs=docs/figures/${runs}.csv"
                          -v "least=${least}" -f "${CMAKE_CURRENT_LIST_DIR}/tables.awk" "docs/${page}.md"
                  WORKING_DIRECTORY "${SOURCE}" RESULT_VARIABLE failed)
  if(failed)
    message(SEND_ERROR "${page}.md: a table is not that of its runs")
  endif()
endfunction()

held_to(recall "## The table" recall/runs 189)
held_to(recall "## Multi-query recall that attention learns" recall/runs-mqar 81)
held_to(uniform_memory "## Results" uniform_memory/runs 18)
held_to(uniform_memory "### Sorting 2,048 symbols" uniform_memory/runs-2048 2)
held_to(uniform_memory "### A fixed part and a uniform one" uniform_memory/runs-fixed-and-uniform 6)
held_to(uniform_memory "### Beside memories of other kinds" uniform_memory/runs-others 27)
held_to(uniform_memory "### Sticky memories" uniform_memory/runs-sticky 9)
held_to(uniform_memory "### Multi-query recall and the needle" uniform_memory/runs-mqar-needle 15)
