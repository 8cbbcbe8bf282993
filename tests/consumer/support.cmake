# For the cases: cmake -DINFTY=... -DFOLDER=... -DPREFIX=... -DEIGEN_HEADERS=... -DCOMPILER=... -DLAUNCHER=...
# -DGENERATOR=... -P CASE.cmake. What they build is in FOLDER; in PREFIX infty has been installed.
cmake_minimum_required(VERSION 3.21)
set(consumer "${CMAKE_CURRENT_LIST_DIR}")
set(eigen5 "${CMAKE_CURRENT_LIST_DIR}/eigen5")
set(compiler -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
             "-DEIGEN_HEADERS=${EIGEN_HEADERS}")
set(plain -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O0")

# run(STATUS TEXT COMMAND...): the command ends with the status and prints the text, in whatever lines. What it
# printed is in `printed`.
function(run wanted text)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
  string(REGEX REPLACE "[ \n]+" " " flat "${printed}")
  string(FIND "${flat}" "${text}" at)
  if(NOT status EQUAL wanted OR at LESS 0)
    message(FATAL_ERROR "${ARGN}\nended with ${status}, not ${wanted}, or did not say: ${text}\n${printed}")
  endif()
  set(printed "${flat}" PARENT_SCOPE)
endfunction()

# silent(TEXT): the last command did not print the text.
function(silent text)
  string(FIND "${printed}" "${text}" at)
  if(NOT at LESS 0)
    message(FATAL_ERROR "It says: ${text}\n${printed}")
  endif()
endfunction()

# configure(STATUS TEXT NAME OPTION...): configures the consumer in an empty folder FOLDER/NAME.
function(configure status text name)
  file(REMOVE_RECURSE "${FOLDER}/${name}")
  run(${status} "${text}" "${CMAKE_COMMAND}" -S "${consumer}" -B "${FOLDER}/${name}" "-DINFTY=${INFTY}" ${compiler}
      ${plain} ${ARGN})
endfunction()

# consume(TEXT NAME OPTION...): a consumer is configured, built, and prints the text.
function(consume text name)
  configure(0 "" ${name} ${ARGN})
  run(0 "" "${CMAKE_COMMAND}" --build "${FOLDER}/${name}")
  run(0 "${text}" "${FOLDER}/${name}/consumer")
endfunction()

# infty's version and the installed Eigen's, as the program prints them.
file(STRINGS "${INFTY}/include/infty/version.hpp" version REGEX "^#define INFTY_VERSION_[A-Z]+ [0-9]+$")
list(TRANSFORM version REPLACE "^.* " "")
list(JOIN version "." version)
