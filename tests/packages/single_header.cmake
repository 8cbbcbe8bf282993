# What the single header's text must be: cmake -DHEADER=FILE -P single_header.cmake

file(STRINGS "${HEADER}" own REGEX "^#[ ]*include <infty/")
if(own)
  message(SEND_ERROR "it includes headers of infty: ${own}")
endif()
foreach(once IN ITEMS "^// SPDX-License-Identifier" "^#pragma once" "string_view version = "
                      "^class Tensor {" "^class LongTermMemory {" "^class Trainer {")
  file(STRINGS "${HEADER}" found REGEX "${once}")
  list(LENGTH found times)
  if(NOT times EQUAL 1)
    message(SEND_ERROR "'${once}' stands in it ${times} times: ${found}")
  endif()
endforeach()
