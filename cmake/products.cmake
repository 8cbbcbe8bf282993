# What multiplies matrices on the CPU in the stead of infty's own tiles, if the user wants it. Included by the build tree
# and by the installed package; infty_target is the library.

option(INFTY_EIGEN_PRODUCTS "Multiply matrices by Eigen" OFF)
option(INFTY_ONEDNN "Multiply matrices of float by oneDNN" OFF)
option(INFTY_BLAS "Multiply matrices by a BLAS that has a cblas.h" OFF)

set(infty_chosen ${INFTY_EIGEN_PRODUCTS} ${INFTY_ONEDNN} ${INFTY_BLAS})
list(FILTER infty_chosen INCLUDE REGEX "ON|TRUE|1|YES")
list(LENGTH infty_chosen infty_chosen)
if(infty_chosen GREATER 1)
  message(FATAL_ERROR "infty: INFTY_EIGEN_PRODUCTS, INFTY_ONEDNN and INFTY_BLAS exclude each other")
elseif(INFTY_EIGEN_PRODUCTS)
  target_compile_definitions(${infty_target} INTERFACE $<BUILD_INTERFACE:INFTY_EIGEN_PRODUCTS>)
elseif(INFTY_ONEDNN)
  # By its files: the package's own description fails where OpenCL is not, which it is not needed for.
  find_path(INFTY_DNNL_HEADERS dnnl.h DOC "Folder that holds dnnl.h")
  find_library(INFTY_DNNL_LIBRARY dnnl DOC "oneDNN")
  mark_as_advanced(INFTY_DNNL_HEADERS INFTY_DNNL_LIBRARY)
  if(NOT INFTY_DNNL_HEADERS OR NOT INFTY_DNNL_LIBRARY)
    message(FATAL_ERROR "infty: oneDNN is missing: apt install libdnnl-dev")
  endif()
  target_link_libraries(${infty_target} INTERFACE $<BUILD_INTERFACE:${INFTY_DNNL_LIBRARY}>)
  target_include_directories(${infty_target} SYSTEM
                             INTERFACE $<BUILD_INTERFACE:${INFTY_DNNL_HEADERS}>)
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
