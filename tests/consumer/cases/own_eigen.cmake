# A project that has an Eigen of its own, of version 5 and not installed: it is the one that is used, and none is looked
# for. EIGEN is its source.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
set(own "-DEIGEN=${EIGEN}" -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
consume("Eigen 5." add_subdirectory ${own} -DWAY=add_subdirectory)
consume("Eigen 5." FetchContent ${own} -DWAY=FetchContent -DINFTY_INSTALL=ON)
consume("Eigen 5." find_package ${own} -DWAY=find_package "-DCMAKE_PREFIX_PATH=${PREFIX}")

# One that is installed: found whatever its version, if that is not too old.
foreach(eigen 5.0.1 3.3.9)
  file(REMOVE_RECURSE "${FOLDER}/${eigen}")
  run(0 "" "${CMAKE_COMMAND}" -S "${eigen5}" -B "${FOLDER}/${eigen}" ${compiler} -DEIGEN_VERSION=${eigen})
endforeach()
consume("Eigen 5." installed -DWAY=find_package "-DCMAKE_PREFIX_PATH=${PREFIX}"
        "-DEigen3_DIR=${FOLDER}/5.0.1/package")
configure(0 "" source -DWAY=add_subdirectory "-DEigen3_DIR=${FOLDER}/5.0.1/package")
configure(1 "infty: Eigen 3.3.9 is too old, 3.4 is the least" old -DWAY=add_subdirectory
          "-DEigen3_DIR=${FOLDER}/3.3.9/package")
configure(1 "The project goes on without infty: Eigen 3.3.9 is too old, 3.4 is the least" old -DWAY=find_package
          "-DCMAKE_PREFIX_PATH=${PREFIX}" "-DEigen3_DIR=${FOLDER}/3.3.9/package" -DREQUIRED=QUIET)
