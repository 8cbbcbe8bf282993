# Inside another project: nothing of ours is built there, and nothing installed.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
foreach(way add_subdirectory FetchContent)
  consume("infty ${version}, Eigen" ${way} -DWAY=${way} -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)
  # Warnings of our headers are not the project's.
  file(STRINGS "${FOLDER}/${way}/compile_commands.json" found REGEX "-isystem ${INFTY}/include ")
  if(NOT found)
    message(FATAL_ERROR "${way}: our headers are not those of a system")
  endif()
  run(0 "" "${CMAKE_COMMAND}" --install "${FOLDER}/${way}" --prefix "${FOLDER}/${way}/prefix")
  file(GLOB_RECURSE installed RELATIVE "${FOLDER}/${way}/prefix" "${FOLDER}/${way}/prefix/*")
  if(NOT installed STREQUAL "bin/consumer")
    message(FATAL_ERROR "${way}: the project has installed ${installed}")
  endif()
endforeach()

# Unless it is wanted, by the option.
consume("infty ${version}, Eigen" install -DWAY=add_subdirectory -DINFTY_INSTALL=ON -DINFTY_CPS=ON)
run(0 "include/infty/infty.hpp" "${CMAKE_COMMAND}" --install "${FOLDER}/install" --prefix "${FOLDER}/prefix")
file(READ "${FOLDER}/prefix/share/cps/infty.cps" cps)
string(JSON described GET "${cps}" version)
string(JSON include GET "${cps}" components infty includes 0)
if(NOT described STREQUAL version OR NOT include STREQUAL "@prefix@/include")
  message(FATAL_ERROR "infty.cps: ${described}, ${include}")
endif()
if(CMAKE_VERSION VERSION_GREATER_EQUAL 4.3)  # which read it
  consume("infty ${version}, Eigen" cps -DWAY=find_package "-Dinfty_DIR=${FOLDER}/prefix/share/cps" -DVERSION=0.2
          -DCOMPONENTS=cpu)
endif()
