# infty::faiss, FAISS's indices over a datastore, where FAISS is (Debian's libfaiss-dev). Included by the build tree and by
# the installed package; infty_faiss_root holds infty/faiss/. Programs that link it see INFTY_FAISS.

set(INFTY_FAISS AUTO CACHE STRING "Offer FAISS's indices: AUTO (if FAISS is there), ON or OFF")
infty_check_choice(INFTY_FAISS)
set(infty_faiss_missing "FAISS (apt install libfaiss-dev)")
if(INFTY_FAISS AND NOT TARGET infty::faiss)
  find_package(OpenMP QUIET COMPONENTS CXX)  # which FAISS's own description names
  if(TARGET OpenMP::OpenMP_CXX)
    find_package(faiss QUIET CONFIG)
  else()
    set(infty_faiss_missing "OpenMP, which FAISS needs")
  endif()
  if(TARGET faiss)
    infty_part(faiss)
    target_link_libraries(${infty_part} INTERFACE infty::infty faiss)
    target_include_directories(${infty_part} ${infty_system} INTERFACE "${infty_faiss_root}")
    target_compile_definitions(${infty_part} INTERFACE INFTY_FAISS)
  elseif(NOT INFTY_FAISS STREQUAL "AUTO")
    message(FATAL_ERROR "infty: INFTY_FAISS is ${INFTY_FAISS}, but ${infty_faiss_missing} is missing")
  elseif(PROJECT_IS_TOP_LEVEL AND infty_target STREQUAL "infty")
    message(STATUS "infty: FAISS's indices are left out, for want of ${infty_faiss_missing}")
  endif()
endif()
