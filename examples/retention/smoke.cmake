# cmake -DPROGRAM=... -DFOLDER=... -P smoke.cmake: what is found against what is known.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(small --segment 16 --numbers 16 --block 4 --ages 16)

# A queue keeps as many vectors as it has numbers, and no part of any other, whatever the samples are.
foreach(coordinates 64 128 512)
  run(0 found ${small} --vectors 16 --coordinates ${coordinates} --seeds 1,2)
  if(NOT found MATCHES "xl +vectors in all 16\\.0, found 16\\.0 \\+- 0\\.0;")
    message(FATAL_ERROR "of ${coordinates} coordinates a queue does not keep the 16 vectors that it holds:\n${found}")
  endif()
  run(0 found ${small} --vectors 64 --coordinates ${coordinates} --seeds 1,2,3,4,5,6,7,8)
  if(NOT found MATCHES "xl +vectors in all 16\\.0, found ([0-9]+)\\.([0-9]) \\+- ([0-9]+)\\.([0-9]);")
    message(FATAL_ERROR "no queue:\n${found}")
  endif()
  math(EXPR off "${CMAKE_MATCH_1} * 10 + ${CMAKE_MATCH_2} - 160")
  math(EXPR most "4 * (${CMAKE_MATCH_3} * 10 + ${CMAKE_MATCH_4}) + 1")
  if(off GREATER most OR off LESS -${most})
    message(FATAL_ERROR "of ${coordinates} coordinates a queue of 16 keeps what it cannot:\n${found}")
  endif()
endforeach()
refused("[--coordinates] it is 63, samples to fit 16 --numbers to: it must be at least four times as many, 64" ${small}
        --vectors 16 --coordinates 63)

# One seed has no error.
run(0 found ${small} --vectors 16 --coordinates 64 --seeds 1 --out one)
if(NOT found MATCHES "\nxl +1 +1\\.00000 +[01]\\.[0-9]+  - *\n" OR found MATCHES "\\+-|0\\.00000\n")
  message(FATAL_ERROR "an error is claimed of one seed:\n${found}")
endif()
file(STRINGS "${FOLDER}/one/retention.csv" lines REGEX "^delta")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^delta,[^,]+,[^,]+,[^,]+,,[^,]+,,[^,]+$")
    message(FATAL_ERROR "an error is claimed of one seed: ${line}")
  endif()
endforeach()

# A folder is looked at before anything is measured.
file(WRITE "${FOLDER}/file" "\n")
run(1 printed ${small} --vectors 16 --coordinates 64 --out file)
same("what is printed" "" "${printed}")
