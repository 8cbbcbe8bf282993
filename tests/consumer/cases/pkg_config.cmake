# A compiler and pkg-config, without CMake.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(ENV{PKG_CONFIG_PATH} "${PREFIX}/share/pkgconfig")
run(0 "${version}" pkg-config --modversion "infty >= 0.2")
run(0 "-I${PREFIX}/share/pkgconfig/../../include" pkg-config --cflags infty)
run(0 "" sh -c "\"$1\" -std=c++20 \"$2\" $(pkg-config --cflags --libs infty) -o \"$3\"" sh "${COMPILER}"
    "${consumer}/main.cpp" "${FOLDER}/consumer")
run(0 "infty ${version}, Eigen" "${FOLDER}/consumer")

# An older standard is the first thing that is said of any header.
foreach(header infty.hpp core/tensor.hpp core/visit.hpp model/transformer_lm.hpp version.hpp)
  file(WRITE "${FOLDER}/old.cpp" "#include <infty/${header}>\n")
  run(1 "infty needs C++20: -std=c++20" "${COMPILER}" -std=c++17 -fsyntax-only -fmax-errors=1 "-I${PREFIX}/include"
      -isystem "${EIGEN_HEADERS}" "${FOLDER}/old.cpp")
endforeach()
