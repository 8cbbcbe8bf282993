# INFTY_OPENMP of a project that found the package: AUTO does without what is not there, ON does not.
include("${CMAKE_CURRENT_LIST_DIR}/../support.cmake")
set(package -DWAY=find_package "-DCMAKE_PREFIX_PATH=${PREFIX}")
set(none -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON)

consume(" without OpenMP" auto ${package} ${none})
configure(0 "mpi is found: FALSE" auto ${package} ${none} -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DINFTY_OPENMP=auto
          -DINFTY_MPI=auto -DOPTIONAL=mpi)  # as AUTO
consume(" without OpenMP" off ${package} -DINFTY_OPENMP=OFF)
configure(1 "INFTY_OPENMP is ON, but ${COMPILER} has no OpenMP" on ${package} ${none} -DINFTY_OPENMP=ON)
if(OPENMP)  # this compiler has it
  consume(" with OpenMP" auto ${package})
  consume(" with OpenMP" on ${package} -DINFTY_OPENMP=ON)
endif()
