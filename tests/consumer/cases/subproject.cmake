# Inside another project: nothing of ours is built there, and nothing installed.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
foreach(way add_subdirectory FetchContent)
  consume("infty ${version}, Eigen" ${way} -DWAY=${way})
  run(0 "" "${CMAKE_COMMAND}" --install "${FOLDER}/${way}" --prefix "${FOLDER}/${way}/prefix")
  file(GLOB_RECURSE installed RELATIVE "${FOLDER}/${way}/prefix" "${FOLDER}/${way}/prefix/*")
  if(NOT installed STREQUAL "bin/consumer")
    message(FATAL_ERROR "${way}: the project has installed ${installed}")
  endif()
endforeach()

# Unless it is wanted.
consume("infty ${version}, Eigen" install -DWAY=add_subdirectory -DINFTY_INSTALL=ON)
run(0 "include/infty/infty.hpp" "${CMAKE_COMMAND}" --install "${FOLDER}/install" --prefix "${FOLDER}/prefix")
