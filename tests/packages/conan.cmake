# The Conan recipe: `conan create` and its test_package where Conan 2 is, in a cache of their own, with
# the Eigen of this machine, so that nothing is downloaded; else the syntax and the version.

set(recipe "${INFTY}/cmake/packages/conan")
set(here "${CMAKE_CURRENT_LIST_DIR}")

include("${here}/run.cmake")

# Every folder that is installed is among what the recipe exports.
file(READ "${INFTY}/cmake/install.cmake" text)
string(REGEX MATCH "install\\(DIRECTORY ([^)]*) DESTINATION" text "${text}")
string(REPLACE " " ";" folders "${CMAKE_MATCH_1}")
if(NOT folders)
  message(FATAL_ERROR "cmake/install.cmake installs no folders")
endif()
file(READ "${recipe}/conanfile.py" text)
foreach(folder IN LISTS folders)
  string(REGEX REPLACE "/.*" "" top "${folder}")
  string(FIND "${text}" "\"${top}/*\"" at)
  if(at LESS 0)
    message(FATAL_ERROR "the recipe does not export ${top}/*, which cmake/install.cmake installs")
  endif()
endforeach()

file(REMOVE_RECURSE "${FOLDER}")
find_program(conan conan)
if(conan)
  set(ENV{CONAN_HOME} "${FOLDER}/home")
  run("${conan}" --version)
endif()
if(conan AND said MATCHES "version 2")
  set(ENV{INFTY_TEST_EIGEN} "${EIGEN}")
  set(ENV{CXX} "${COMPILER}")
  run("${conan}" profile detect)
  run("${conan}" create "${here}/eigen")
  # Optimising costs more than the test is worth.
  run("${conan}" create "${recipe}" --no-remote -s compiler.cppstd=20 -s build_type=Debug
      -c "tools.cmake.cmake_layout:test_folder=${FOLDER}/test_package" -c "tools.build:jobs=1")
  check_remembered()
  message("by real Conan: the package was made and its test_package built and run")
  return()
endif()

find_program(python NAMES python3 python)
if(NOT python)
  message(FATAL_ERROR "there is neither Conan 2 nor Python here to look at the recipe with")
endif()
# What Conan would hand the recipe, as far as its version needs it.
run("${python}" -B "${here}/recipe_without_conan.py" "${recipe}")
string(STRIP "${said}" said)
if(NOT said STREQUAL "infty ${VERSION}")
  message(FATAL_ERROR "the recipe is of '${said}', the project is 'infty ${VERSION}'")
endif()
message("no Conan 2 here: the recipe was parsed and asked for its version, no package was made")
