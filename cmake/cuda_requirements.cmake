# What the CUDA backend asks for. Also run by itself, with `cmake -P`, by its tests.

# cub::DeviceReduce::TransformReduce came with it.
set(infty_least_cuda 12.4)
set(infty_least_architecture 80)

# infty_check_architectures(ARCHITECTURE...): stops where one is older than the kernels are written for. CMake's
# words (native, all, all-major) are left to CMake.
function(infty_check_architectures)
  foreach(architecture IN LISTS ARGN)
    if(architecture MATCHES "^([0-9]+)" AND CMAKE_MATCH_1 LESS infty_least_architecture)
      message(
        FATAL_ERROR
          "infty: CMAKE_CUDA_ARCHITECTURES has ${architecture}: ${infty_least_architecture}, of Ampere, is the least")
    endif()
  endforeach()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  infty_check_architectures(${ARCHITECTURES})
endif()
