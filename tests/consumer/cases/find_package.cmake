# The installed package is found by version and components, and says why if it is not.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
set(package -DWAY=find_package "-DCMAKE_PREFIX_PATH=${PREFIX}")

consume("infty ${version}, Eigen" build ${package} -DVERSION=0.2 -DCOMPONENTS=cpu -DREQUIRED=REQUIRED)
run(0 "" "${CMAKE_COMMAND}" --install "${FOLDER}/build" --prefix "${FOLDER}/prefix")
file(STRINGS "${FOLDER}/prefix/share/cmake/wrapper/wrapper.cmake" links REGEX "INTERFACE_LINK_LIBRARIES")
if(NOT links MATCHES "infty::infty")
  message(FATAL_ERROR "The project's own library was exported with ${links}")
endif()

foreach(other 0.1 0.3 1 0.2.99)
  configure(1 "that is compatible with requested version \"${other}\"" other ${package} -DVERSION=${other} -DREQUIRED=REQUIRED)
endforeach()
configure(1 "infty has no component 'gpu': there are cpu, compiled, thrust, cuda, faiss and mpi" component ${package}
          -DCOMPONENTS=gpu -DREQUIRED=REQUIRED)
configure(1 "The project goes on without infty: infty has no component 'gpu'" optional ${package} -DREQUIRED=QUIET
          -DCOMPONENTS=gpu)
configure(1 "infty's component thrust needs INFTY_THRUST and the Thrust headers" thrust ${package}
          -DCOMPONENTS=thrust -DREQUIRED=REQUIRED -DINFTY_THRUST=OFF)
configure(1 "infty's component mpi needs INFTY_MPI and an MPI" mpi ${package} -DCOMPONENTS=mpi -DREQUIRED=REQUIRED
          -DINFTY_MPI=OFF)
configure(1 "infty's component compiled needs an infty that was installed with INFTY_COMPILED=ON" compiled ${package}
          -DCOMPONENTS=compiled -DREQUIRED=REQUIRED)
configure(1 "infty's component faiss needs INFTY_FAISS and OpenMP, which FAISS needs" faiss ${package}
          -DCOMPONENTS=faiss -DREQUIRED=REQUIRED -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON)

# More than once in a project, whoever found it or brought it first.
configure(0 "" again ${package} -DREQUIRED=REQUIRED -DAGAIN=)
configure(0 "" again -DWAY=add_subdirectory "-DCMAKE_PREFIX_PATH=${PREFIX}" -DAGAIN=)

# A GPU's part that this compiler cannot make is not found, and stops nobody who can do without: this architecture is
# refused before the compiler is called.
set(old -DCMAKE_CUDA_COMPILER=nvcc -DCMAKE_CUDA_ARCHITECTURES=75)
configure(0 "cuda is found: FALSE" cuda ${package} -DREQUIRED=REQUIRED -DOPTIONAL=cuda ${old} -DAGAIN=)
configure(1 "infty's component cuda: CMAKE_CUDA_ARCHITECTURES has 75: 80, of Ampere, is the least" cuda ${package}
          -DREQUIRED=REQUIRED -DCOMPONENTS=cuda ${old})
configure(1 "infty: CMAKE_CUDA_ARCHITECTURES has 75: 80, of Ampere, is the least" cuda ${package} -DREQUIRED=REQUIRED
          -DINFTY_CUDA=ON ${old})

# Options: what is neither is said, and so is a contradiction in whatever letters.
configure(1 "infty: INFTY_BLAS is 'maybe': it must be ON or OFF" options ${package} -DINFTY_BLAS=maybe)
configure(1 "INFTY_EIGEN_PRODUCTS, INFTY_ONEDNN and INFTY_BLAS exclude each other" options ${package}
          -DINFTY_EIGEN_PRODUCTS=on -DINFTY_BLAS=yes)

if(THRUST)  # its headers are here; what the project exports of it, it can
  configure(0 "" thrust ${package} -DCOMPONENTS=thrust -DREQUIRED=REQUIRED)
  configure(0 "" thrust ${package} -DREQUIRED=REQUIRED -DINFTY_THRUST=ON -DAGAIN=thrust)
endif()
