# The vcpkg port: `vcpkg install` where vcpkg is, with the Eigen of this machine, so that nothing of it
# is downloaded; else the portfile is run with stand-ins for vcpkg's functions. In both cases a program
# is then built with what was installed.

set(port "${INFTY}/cmake/packages/vcpkg/ports/infty")
set(example "${INFTY}/cmake/packages/vcpkg/example")
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

# The manifests
function(expect file value)  # expect(FILE VALUE KEY...)
  file(READ "${file}" text)
  string(JSON found ERROR_VARIABLE error GET "${text}" ${ARGN})
  if(error OR NOT found STREQUAL value)
    message(FATAL_ERROR "${file}: ${ARGN} is '${found}', it must be '${value}'. ${error}")
  endif()
endfunction()
expect("${port}/vcpkg.json" infty name)
expect("${port}/vcpkg.json" "${VERSION}" version)
expect("${port}/vcpkg.json" MIT license)
expect("${port}/vcpkg.json" eigen3 dependencies 0)
expect("${port}/vcpkg.json" vcpkg-cmake dependencies 1 name)
expect("${port}/vcpkg.json" vcpkg-cmake-config dependencies 2 name)
expect("${example}/vcpkg.json" infty dependencies 0)
expect("${example}/vcpkg-configuration.json" ../ports overlay-ports 0)

file(REMOVE_RECURSE "${FOLDER}")
find_program(vcpkg vcpkg HINTS ENV VCPKG_ROOT)
if(vcpkg AND EXISTS "$ENV{VCPKG_ROOT}/scripts/buildsystems/vcpkg.cmake")
  run("${vcpkg}" install infty --classic "--overlay-ports=${port}"
      "--overlay-ports=${CMAKE_CURRENT_LIST_DIR}/eigen" --binarysource=clear
      "--x-install-root=${FOLDER}/installed" "--x-buildtrees-root=${FOLDER}/buildtrees"
      "--x-packages-root=${FOLDER}/packages" "--downloads-root=${FOLDER}/downloads")
  set(found "-DCMAKE_TOOLCHAIN_FILE=$ENV{VCPKG_ROOT}/scripts/buildsystems/vcpkg.cmake"
            "-DVCPKG_INSTALLED_DIR=${FOLDER}/installed" -DVCPKG_MANIFEST_MODE=OFF)
  set(verdict "by real vcpkg: the port was installed")
else()
  run("${CMAKE_COMMAND}" "-DPORT=infty" "-DPORTFILE=${port}/portfile.cmake"
      "-DCURRENT_PACKAGES_DIR=${FOLDER}/installed" "-DBUILD=${FOLDER}/build" "-DCOMPILER=${COMPILER}"
      "-DGENERATOR=${GENERATOR}" -P "${CMAKE_CURRENT_LIST_DIR}/portfile_without_vcpkg.cmake")
  set(found "-DCMAKE_PREFIX_PATH=${FOLDER}/installed")
  set(verdict "no vcpkg here (VCPKG_ROOT): the portfile was run with stand-ins for vcpkg's functions")
endif()

# A program with what was installed
run("${CMAKE_COMMAND}" -S "${INFTY}/cmake/packages/conan/test_package" -B "${FOLDER}/program" -G
    "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
    -DCMAKE_BUILD_TYPE=Debug "-DEXECUTABLE_OUTPUT_PATH=${FOLDER}" ${found})
run("${CMAKE_COMMAND}" --build "${FOLDER}/program" --config Debug)
run("${FOLDER}/remember")
check_remembered()
message("${verdict}; a program was built with what it installed, and run")
