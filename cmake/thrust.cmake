# infty::thrust, the backends on Thrust's host systems, where the Thrust headers are: those of the CUDA
# Toolkit or Debian's libthrust-dev. infty::cuda, the backend for NVIDIA GPUs, if INFTY_CUDA is on or
# infty_cuda_component, which the package sets.
# Included by the build tree and by the installed package; infty_thrust_root holds infty/thrust/.

option(INFTY_THRUST "Offer Thrust's host systems as backends, where the headers are" ON)
find_path(
  INFTY_THRUST_HEADERS thrust/version.h
  HINTS ENV CUDA_PATH
  PATHS /usr/local/cuda
  PATH_SUFFIXES include/cccl include
  DOC "Folder that holds thrust/")
infty_check_switches(INFTY_THRUST)
mark_as_advanced(INFTY_THRUST_HEADERS)

# infty_part(NAME): the target infty::NAME, imported if infty::infty is, so that a project that exports what it
# links to the one can export what it links to the other. Its name for commands is in infty_part.
macro(infty_part name)
  if(infty_target STREQUAL "infty")
    set(infty_part infty_${name})
    add_library(${infty_part} INTERFACE)
    add_library(infty::${name} ALIAS ${infty_part})
  else()
    set(infty_part infty::${name})
    add_library(${infty_part} INTERFACE IMPORTED)
  endif()
endmacro()

if(INFTY_THRUST AND INFTY_THRUST_HEADERS AND NOT TARGET infty::thrust)
  infty_part(thrust)
  target_link_libraries(${infty_part} INTERFACE infty::infty)
  target_include_directories(${infty_part} ${infty_system} INTERFACE "${infty_thrust_root}")
  target_include_directories(${infty_part} SYSTEM INTERFACE "${INFTY_THRUST_HEADERS}")
  # Otherwise Thrust would take CUDA for its default system. It is the library that is asked for OpenMP: the variables of
  # the find_package that made it may be another folder's.
  get_target_property(infty_links infty::infty INTERFACE_LINK_LIBRARIES)
  set(infty_thrust_system THRUST_DEVICE_SYSTEM_CPP)
  if(infty_links MATCHES "OpenMP::OpenMP_CXX")
    set(infty_thrust_system THRUST_DEVICE_SYSTEM_OMP)
  endif()
  target_compile_definitions(${infty_part} INTERFACE THRUST_DEVICE_SYSTEM=${infty_thrust_system})
endif()

# A package's component that is not to be had is not found; an option that is on stops.
set(infty_cuda_missing)
if((INFTY_CUDA OR infty_cuda_component) AND NOT TARGET infty::cuda)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Ampere, Hopper and, translated when it runs, what comes after.
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  include("${CMAKE_CURRENT_LIST_DIR}/cuda_requirements.cmake")
  infty_old_architecture(infty_cuda_missing ${CMAKE_CUDA_ARCHITECTURES})
  if(NOT infty_cuda_missing)
    enable_language(CUDA)
    if("native" IN_LIST CMAKE_CUDA_ARCHITECTURES)
      infty_old_architecture(infty_cuda_missing ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
    endif()
    find_package(CUDAToolkit QUIET)
    if(NOT CUDAToolkit_FOUND)
      set(infty_cuda_missing "the CUDA Toolkit is missing: ${infty_least_cuda} is the least")
    elseif(CUDAToolkit_VERSION VERSION_LESS infty_least_cuda)
      set(infty_cuda_missing "the CUDA Toolkit is ${CUDAToolkit_VERSION}: ${infty_least_cuda} is the least")
    endif()
  endif()
  if(infty_cuda_missing AND NOT infty_cuda_component)
    message(FATAL_ERROR "infty: ${infty_cuda_missing}")
  endif()
endif()

if((INFTY_CUDA OR infty_cuda_component) AND NOT infty_cuda_missing AND NOT TARGET infty::cuda)
  set(INFTY_CUDA_RUNTIME cudart CACHE STRING "CUDA's runtime library: cudart, or cudart_static")
  mark_as_advanced(INFTY_CUDA_RUNTIME)
  infty_part(cuda)
  target_link_libraries(${infty_part} INTERFACE infty::infty CUDA::${INFTY_CUDA_RUNTIME} CUDA::cublas CUDA::cublasLt CUDA::cusolver)
  target_include_directories(${infty_part} ${infty_system} INTERFACE "${infty_thrust_root}")
  # CMake 3.25 does not know the standards of CUDA 13.
  target_compile_options(
    ${infty_part}
    INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--extended-lambda;--expt-relaxed-constexpr>")
endif()
