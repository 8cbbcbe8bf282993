# SPDX-License-Identifier: MIT
"""The Eigen of this machine under the name of Conan's, so that a test downloads nothing."""

import os

from conan import ConanFile


class Eigen(ConanFile):
    name = "eigen"
    version = "3.4.0"
    package_type = "header-library"

    def package_info(self):
        self.cpp_info.includedirs = [os.environ["INFTY_TEST_EIGEN"]]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "Eigen3")
        self.cpp_info.set_property("cmake_target_name", "Eigen3::Eigen")
