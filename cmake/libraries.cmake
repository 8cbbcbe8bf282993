# What all uses of infty link: Eigen, whose target must be there, and OpenMP if it is to be used. Included by the build
# tree and by the installed package; infty_target is the library. Nothing of it is exported, so that an Eigen that a
# project around us has made need not be, either.

target_link_libraries(${infty_target} INTERFACE $<BUILD_INTERFACE:Eigen3::Eigen>)

set(INFTY_OPENMP ${infty_openmp_default} CACHE STRING "Threads by OpenMP: AUTO (if there is an OpenMP), ON or OFF")
infty_check_choice(INFTY_OPENMP)
set(infty_openmp OFF)
if(INFTY_OPENMP)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(TARGET OpenMP::OpenMP_CXX)
    set(infty_openmp ON)
    target_link_libraries(${infty_target} INTERFACE $<BUILD_INTERFACE:OpenMP::OpenMP_CXX>)
  elseif(NOT INFTY_OPENMP STREQUAL "AUTO")
    message(FATAL_ERROR "infty: INFTY_OPENMP is ${INFTY_OPENMP}, but ${CMAKE_CXX_COMPILER} has no OpenMP")
  endif()
endif()
