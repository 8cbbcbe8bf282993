# What an installed infty remembers of how it was installed, and what it must not.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
set(build "${FOLDER}/build")
set(package -DWAY=find_package "-DCMAKE_PREFIX_PATH=${FOLDER}/prefix;${FOLDER}/data" -DREQUIRED=REQUIRED)
set(infty "${CMAKE_COMMAND}" -S "${INFTY}" ${compiler} -DINFTY_TESTS=OFF -DINFTY_EXAMPLES=OFF -DINFTY_BENCHMARKS=OFF)

file(REMOVE_RECURSE "${FOLDER}")
run(0 "" ${infty} -B "${build}" -DINFTY_EIGEN_PRODUCTS=ON "-DCMAKE_INSTALL_PREFIX=${FOLDER}/prefix"
    "-DCMAKE_INSTALL_DATADIR=${FOLDER}/data")
# An earlier installation has left a compiled library there, which these headers are not of.
file(WRITE "${FOLDER}/data/cmake/infty/infty-compiled.cmake" "message(FATAL_ERROR \"It is read\")\n")
run(0 "" "${CMAKE_COMMAND}" --install "${build}")

# product(STATE NAME OPTION...): the option of a consumer, as it stands in the cache.
function(product state name)
  configure(0 "" ${name} "-Dinfty_DIR=${FOLDER}/data/cmake/infty" ${package} ${ARGN})
  file(STRINGS "${FOLDER}/${name}/CMakeCache.txt" found REGEX "^INFTY_EIGEN_PRODUCTS:BOOL=${state}$")
  if(NOT found)
    message(FATAL_ERROR "${name}: INFTY_EIGEN_PRODUCTS is not ${state}")
  endif()
endfunction()
product(ON default)
run(0 "" "${CMAKE_COMMAND}" "${FOLDER}/default")  # nor does it forget when it is configured anew
file(STRINGS "${FOLDER}/default/CMakeCache.txt" found REGEX "^INFTY_EIGEN_PRODUCTS:BOOL=ON$")
if(NOT found)
  message(FATAL_ERROR "INFTY_EIGEN_PRODUCTS was lost")
endif()
product(OFF other -DINFTY_EIGEN_PRODUCTS=OFF)
product(OFF blas -DINFTY_BLAS=OFF)

# pkg-config's file knows the prefix from where it lies.
file(STRINGS "${FOLDER}/data/pkgconfig/infty.pc" found REGEX "^prefix=.*/[.][.]/[.][.]/prefix$")
if(NOT found)
  file(READ "${FOLDER}/data/pkgconfig/infty.pc" text)
  message(FATAL_ERROR "infty.pc has another prefix than ../../prefix:\n${text}")
endif()
