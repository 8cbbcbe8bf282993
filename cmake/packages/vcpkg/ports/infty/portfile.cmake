# The tree that this port lies in. vcpkg keeps what it builds by the files of a port, so that it does
# not notice when others of the tree change: `vcpkg install --no-binarycaching` after `vcpkg remove infty`.
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../../../..")
set(VCPKG_BUILD_TYPE release)  # headers alone

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DINFTY_TESTS=OFF -DINFTY_EXAMPLES=OFF
                                                           -DINFTY_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/infty)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc")

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
