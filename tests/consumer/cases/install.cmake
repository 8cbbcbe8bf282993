# With a compiler and Eigen alone a plain `cmake -B build` works, says what it leaves out, and installs the headers,
# which then lie in PREFIX for the other cases. Programs that are asked for by name are not left out.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
set(build "${FOLDER}/build")
set(bare)
foreach(package Catch2 nlohmann_json CLI11 benchmark OpenMP)
  list(APPEND bare -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
set(infty "${CMAKE_COMMAND}" -S "${INFTY}" ${compiler} ${bare})

file(REMOVE_RECURSE "${FOLDER}" "${PREFIX}")
run(0 "infty: the tests are left out, for want of Catch2 (apt install catch2) and nlohmann_json (apt install nlohmann-json3-dev)"
    ${infty} -B "${build}")
run(0 "" "${CMAKE_COMMAND}" --install "${build}" --prefix "${FOLDER}/prefix")
foreach(preset release dev)  # those of `./dev test`
  run(1 "INFTY_TESTS is ON, but Catch2 (apt install catch2) and" ${infty} -B "${FOLDER}/${preset}" --preset ${preset})
endforeach()
run(1 "INFTY_TESTS is 'MAYBE': it must be AUTO, ON or OFF" ${infty} -B "${FOLDER}/maybe" -DINFTY_TESTS=MAYBE)
run(1 "INFTY_COMPILED is 'maybe': it must be ON or OFF" ${infty} -B "${FOLDER}/maybe" -DINFTY_COMPILED=maybe)
run(1 "infty: Eigen is missing: apt install libeigen3-dev, or pass -DEigen3_ROOT=" ${infty} -B "${FOLDER}/eigen"
    -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)

# All headers are there, and no more.
foreach(root include cuda faiss mpi)
  file(GLOB_RECURSE found RELATIVE "${INFTY}/${root}" "${INFTY}/${root}/infty/*")
  list(APPEND sources ${found})
endforeach()
file(GLOB_RECURSE installed RELATIVE "${FOLDER}/prefix/include" "${FOLDER}/prefix/include/*")
list(SORT sources)
list(SORT installed)
if(NOT sources STREQUAL installed)
  message(FATAL_ERROR "installed: ${installed}\nsources: ${sources}")
endif()

# What is installed can be moved.
file(RENAME "${FOLDER}/prefix" "${PREFIX}")
