# infty::mpi, ranks that MPI starts, where an MPI is (Debian's libopenmpi-dev or libmpich-dev). Included by the build tree
# and by the installed package; infty_mpi_root holds infty/mpi/. Programs that link it see INFTY_MPI.

set(INFTY_MPI AUTO CACHE STRING "Offer ranks by MPI: AUTO (if there is an MPI), ON or OFF")
infty_check_choice(INFTY_MPI)
if(INFTY_MPI AND NOT TARGET infty::mpi)
  set(MPI_CXX_SKIP_MPICXX ON)  # the C++ bindings of old, which nobody needs
  find_package(MPI QUIET COMPONENTS CXX)
  find_package(Threads QUIET)
  if(TARGET MPI::MPI_CXX AND TARGET Threads::Threads)
    infty_part(mpi)
    target_link_libraries(${infty_part} INTERFACE infty::infty MPI::MPI_CXX Threads::Threads)
    target_include_directories(${infty_part} ${infty_system} INTERFACE "${infty_mpi_root}")
    target_compile_definitions(${infty_part} INTERFACE INFTY_MPI)
  elseif(NOT INFTY_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "infty: INFTY_MPI is ${INFTY_MPI}, but there is no MPI (apt install libopenmpi-dev openmpi-bin)")
  elseif(PROJECT_IS_TOP_LEVEL AND infty_target STREQUAL "infty")
    message(STATUS "infty: ranks by MPI are left out, for want of one (apt install libopenmpi-dev openmpi-bin)")
  endif()
endif()
