# The package for Debian and Ubuntu, made as docs/install.md says, and found where it is unpacked.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
file(REMOVE_RECURSE "${FOLDER}")
run(0 "" "${CMAKE_COMMAND}" -S "${INFTY}" --preset headers -B "${FOLDER}/build" ${compiler})
run(0 "" "${CMAKE_COMMAND}" -E chdir "${FOLDER}/build" "${CPACK}" -G DEB)
set(deb "${FOLDER}/build/libinfty-dev_${version}_all.deb")
run(0 "Depends: libeigen3-dev (>= 3.4)" dpkg-deb --info "${deb}")
run(0 "" dpkg-deb --extract "${deb}" "${FOLDER}/root")
consume("infty ${version}, Eigen" consumer -DWAY=find_package -DVERSION=0.2 -DCOMPONENTS=cpu
        "-DCMAKE_PREFIX_PATH=${FOLDER}/root/usr")
file(STRINGS "${FOLDER}/consumer/CMakeCache.txt" found REGEX "^infty_DIR:.*=${FOLDER}/root/usr/share/cmake/infty$")
if(NOT found)
  message(FATAL_ERROR "It was another infty that was found")
endif()
