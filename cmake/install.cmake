# What `cmake --install` and `cpack` bring: the headers, the CMake package, and what pkg-config reads. All of it is the
# same on every machine, but for infty::compiled where that was built, and can be moved.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/infty)
configure_package_config_file(cmake/infty-config.cmake.in infty-config.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
set(any_architecture ARCH_INDEPENDENT)
if(INFTY_COMPILED)
  set(any_architecture)
endif()
write_basic_package_version_file(infty-config-version.cmake COMPATIBILITY SameMinorVersion
                                 ${any_architecture})
install(TARGETS infty EXPORT infty INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT infty NAMESPACE infty:: FILE infty-targets.cmake DESTINATION ${package_dir})
install(FILES "${PROJECT_BINARY_DIR}/infty-config.cmake"
              "${PROJECT_BINARY_DIR}/infty-config-version.cmake" DESTINATION ${package_dir})
if(INFTY_COMPILED)
  install(TARGETS infty_compiled EXPORT infty_compiled)
  install(EXPORT infty_compiled NAMESPACE infty:: FILE infty-compiled.cmake DESTINATION ${package_dir})
endif()
install(FILES cmake/choices.cmake cmake/libraries.cmake cmake/products.cmake cmake/thrust.cmake cmake/faiss.cmake
              cmake/mpi.cmake cmake/cuda_requirements.cmake DESTINATION ${package_dir})
install(DIRECTORY include/infty cuda/infty faiss/infty mpi/infty DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# pkg-config knows where the file is that it reads, and so where the prefix is.
set(pc_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig"
           OUTPUT_VARIABLE pc_prefix)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
           OUTPUT_VARIABLE pc_include)
configure_file(cmake/infty.pc.in infty.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/infty.pc" DESTINATION ${pc_dir})

# The Common Package Specification, on demand: where it is, CMake from 4.3 on takes it in the stead of the package above,
# and all targets but infty::infty are lost, OpenMP, and what is said of wrong components.
option(INFTY_CPS "Install a description of the package in CPS, too" OFF)
infty_check_switches(INFTY_CPS)
if(INFTY_CPS)
  set(cps_dir ${CMAKE_INSTALL_DATADIR}/cps)
  set(prefix "@prefix@")  # CPS's own word
  configure_file(cmake/infty.cps.in infty.cps @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/infty.cps" DESTINATION ${cps_dir})
endif()

# `cpack -G DEB`, a package for all architectures if there is nothing compiled in it.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_PACKAGE_NAME infty)
  set(CPACK_PACKAGE_VENDOR infty)
  set(CPACK_PACKAGE_CONTACT "infty maintainers <maintainers@localhost>")
  set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_GENERATOR DEB)
  set(CPACK_DEBIAN_PACKAGE_NAME libinfty-dev)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  if(NOT INFTY_COMPILED)
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
  endif()
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libeigen3-dev (>= 3.4)")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libthrust-dev, libfaiss-dev, libopenmpi-dev")
  include(CPack)
endif()
