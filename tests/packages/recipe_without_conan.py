# SPDX-License-Identifier: MIT
"""Prints name and version of the recipe in a folder, without Conan: recipe_without_conan.py FOLDER"""

import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

folder = Path(sys.argv[1])
for name in ("conan", "conan.tools", "conan.tools.build", "conan.tools.cmake", "conan.tools.files"):
    sys.modules[name] = MagicMock()
sys.modules["conan"].ConanFile = type("ConanFile", (), {"recipe_folder": str(folder)})

for path in (folder / "conanfile.py", folder / "test_package" / "conanfile.py"):
    module = types.ModuleType(path.parent.name)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    if hasattr(module, "Infty"):
        recipe = module.Infty()
        recipe.set_version()
        print(recipe.name, recipe.version)
