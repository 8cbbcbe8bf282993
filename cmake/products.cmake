# What multiplies matrices on the CPU in Eigen's stead, if the user wants it. Included by the build tree
# and by the installed package; infty_target is the library.

option(INFTY_ONEDNN "Multiply matrices of float by oneDNN" OFF)
option(INFTY_BLAS "Multiply matrices by a BLAS that has a cblas.h" OFF)

if(INFTY_ONEDNN AND INFTY_BLAS)
  message(FATAL_ERROR "infty: INFTY_ONEDNN and INFTY_BLAS exclude each other")
elseif(INFTY_ONEDNN)
  find_package(dnnl CONFIG QUIET)
  if(NOT dnnl_FOUND)
    message(FATAL_ERROR "infty: oneDNN is missing: apt install libdnnl-dev")
  endif()
  target_link_libraries(${infty_target} INTERFACE $<BUILD_INTERFACE:DNNL::dnnl>)
  target_compile_definitions(${infty_target} INTERFACE $<BUILD_INTERFACE:INFTY_ONEDNN>)
elseif(INFTY_BLAS)
  find_package(BLAS QUIET)
  find_path(INFTY_CBLAS_HEADERS cblas.h PATH_SUFFIXES openblas DOC "Folder that holds cblas.h")
  mark_as_advanced(INFTY_CBLAS_HEADERS)
  if(NOT BLAS_FOUND OR NOT INFTY_CBLAS_HEADERS)
    message(FATAL_ERROR "infty: a BLAS with cblas.h is missing: apt install libopenblas-dev")
  endif()
  target_link_libraries(${infty_target} INTERFACE $<BUILD_INTERFACE:${BLAS_LIBRARIES}>)
  target_include_directories(${infty_target} SYSTEM
                             INTERFACE $<BUILD_INTERFACE:${INFTY_CBLAS_HEADERS}>)
  target_compile_definitions(${infty_target} INTERFACE $<BUILD_INTERFACE:INFTY_BLAS>)
endif()
