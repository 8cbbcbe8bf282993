# Runs PORTFILE as vcpkg would, with functions that do what vcpkg's do for a port of headers alone.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  if(arg_UNPARSED_ARGUMENTS OR NOT EXISTS "${arg_SOURCE_PATH}/CMakeLists.txt")
    message(FATAL_ERROR "vcpkg_cmake_configure(${ARGV}): no such argument or sources")
  endif()
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${BUILD}" -G "${GENERATOR}"
      "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}"
      -DCMAKE_BUILD_TYPE=Release ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --install "${BUILD}")
endfunction()

# Moves the CMake package to where vcpkg looks for it, a folder nearer to the prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  set(config "${CURRENT_PACKAGES_DIR}/share/${PORT}/${PORT}-config.cmake")
  file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/cmake")
  file(READ "${config}" text)
  string(REPLACE "/../../../\" ABSOLUTE" "/../../\" ABSOLUTE" text "${text}")
  file(WRITE "${config}" "${text}")
  file(GLOB targets "${CURRENT_PACKAGES_DIR}/share/${PORT}/*-targets.cmake")
  file(READ "${targets}" text)
  string(REPLACE "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nif" "if" text
                 "${text}")
  file(WRITE "${targets}" "${text}")
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  file(COPY_FILE "${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/share")
include("${PORTFILE}")

# What vcpkg would say of the package afterwards
foreach(needed include/infty/infty.hpp share/${PORT}/copyright share/${PORT}/usage
               share/${PORT}/${PORT}-config.cmake)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${needed}")
    message(FATAL_ERROR "the portfile has not installed ${needed}")
  endif()
endforeach()
file(GLOB strangers RELATIVE "${CURRENT_PACKAGES_DIR}" "${CURRENT_PACKAGES_DIR}/*")
list(REMOVE_ITEM strangers include share)
if(strangers)
  message(FATAL_ERROR "the portfile leaves ${strangers}, which a port of headers has not")
endif()
