# SPDX-License-Identifier: MIT
"""infty as a Conan 2 package, made from the tree that this recipe lies in:

    conan create cmake/packages/conan -s compiler.cppstd=20 --build=missing
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Infty(ConanFile):
    name = "infty"
    description = "Header-only C++20 tensor library for transformers with memory"
    license = "MIT"
    topics = ("transformer", "memory", "tensor", "autograd", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def _tree(self):
        return Path(self.recipe_folder).parents[2]

    def set_version(self):
        text = (self._tree() / "include/infty/version.hpp").read_text(encoding="utf-8")
        parts = re.findall(r"^#define INFTY_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.M)
        self.version = ".".join(parts)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "cuda/*", "faiss/*",
                        "mpi/*"):
            copy(self, pattern, self._tree(), self.export_sources_folder,
                 excludes="cmake/packages/*")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("eigen/[>=3.4.0 <6]", transitive_headers=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for programs in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"INFTY_{programs}"] = "OFF"
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")
        CMake(self).install()

    def package_info(self):
        # find_package(infty) finds the package's own files: they bring the same targets and options
        # as everywhere else.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/infty"]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
