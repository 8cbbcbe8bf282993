# What the CUDA backend asks for. Also run by itself, with `cmake -P`, by its tests.

# cub::DeviceReduce::TransformReduce came with it.
set(infty_least_cuda 12.4)
set(infty_least_architecture 80)

# infty_old_architecture(SENTENCE ARCHITECTURE...): says in SENTENCE which one is older than the kernels are written
# for; it is empty if none is. CMake's words (native, all, all-major) are left to CMake.
function(infty_old_architecture sentence)
  set(${sentence} "" PARENT_SCOPE)
  foreach(architecture IN LISTS ARGN)
    if(architecture MATCHES "^([0-9]+)" AND CMAKE_MATCH_1 LESS infty_least_architecture)
      set(least "${infty_least_architecture}, of Ampere, is the least")
      set(${sentence} "CMAKE_CUDA_ARCHITECTURES has ${architecture}: ${least}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  infty_old_architecture(sentence ${ARCHITECTURES})
  if(sentence)
    message(FATAL_ERROR "infty: ${sentence}")
  endif()
endif()
