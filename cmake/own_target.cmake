# How this project's own programs are compiled. None of it reaches a user of infty::infty.

set(warnings -Wall -Wextra -Wconversion -Wshadow)

# Our tests ask for it. Other compilers than theirs, and GCC's optimiser, find what they do not.
option(INFTY_WERROR "Warnings in our own programs are errors" OFF)
infty_check_switches(INFTY_WERROR)
if(INFTY_WERROR)
  set(error -Werror)
  set(cuda_error -Werror=all-warnings)
endif()

# Warnings, and the sanitizers when they are asked for.
function(infty_own target)
  # nvcc hands the host compiler code that is not pedantic.
  list(JOIN warnings "," joined)
  target_compile_options(
    ${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wpedantic>"
                      "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_error};-Xcompiler=${joined}>")
  if(INFTY_SANITIZE)
    # Most of the time goes into compiling, so there is no optimisation. Line numbers alone (-g1) save
    # a third of it, and so do three checks of UBSan's dropped, which ASan's findings and the lack of
    # virtual functions cover. Without recovery a finding fails the test.
    target_compile_options(
      ${target} PRIVATE -O0 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined
                        -fno-sanitize=null,object-size,vptr -fno-sanitize-recover=all)
    # GCC's flow warnings are false in sanitised code, so a warning is no error there; Clang 16 does
    # not say by GCC's macro that ASan is on.
    target_compile_options(
      ${target} PRIVATE $<IF:$<CXX_COMPILER_ID:GNU>,-Wno-maybe-uninitialized,${error}\;-D__SANITIZE_ADDRESS__>)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  else()
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${error}>")
  endif()
  target_link_libraries(${target} PRIVATE infty::infty)
endfunction()

# Warnings in a program that has sanitizers of its own and no OpenMP, which not all of them
# see through and the library does without: `infty_own_serial(target thread)` is ThreadSanitizer's.
function(infty_own_serial target sanitizers)
  target_compile_options(${target} PRIVATE ${warnings} -Wpedantic)
  if(sanitizers)
    target_compile_options(
      ${target} PRIVATE -g1 -fno-omit-frame-pointer -fsanitize=${sanitizers}
                        -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:Clang>:${error}>)
    target_link_options(${target} PRIVATE -fsanitize=${sanitizers})
  endif()
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include"
                                               "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE Eigen3::Eigen)
endfunction()

# As infty_own, for a program whose speed matters: -O3, and this machine's instructions if allowed.
# Without errno a loop over std::sqrt becomes vector code; GCC makes none of what has a condition, as
# an exponential, for AVX2 unless it is told that no one looks at what an operation has signalled. A
# Quick build, which is not optimised, optimises these a little.
function(infty_own_fast target)
  infty_own(${target})
  if(NOT INFTY_SANITIZE)
    set(fast -fno-math-errno -fno-trapping-math $<$<CONFIG:Release>:-O3> $<$<CONFIG:Quick>:-O1>
             $<$<BOOL:${INFTY_NATIVE}>:-march=native>)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${fast}>")
  endif()
endfunction()

option(INFTY_OWN_COMPILED "Our own programs share what most of them would instantiate: GCC and Clang" OFF)
mark_as_advanced(INFTY_OWN_COMPILED)

# infty_share(TARGET HOW): links what infty::compiled has, compiled once for all programs of infty_HOW, which is infty_own
# or infty_own_fast. Its lists come before what a source includes: half of what most of them instantiate is on them.
function(infty_share target how)
  if(NOT INFTY_OWN_COMPILED)
    return()
  endif()
  set(library infty_shared_${how})
  if(NOT TARGET ${library})
    add_library(${library} STATIC "${PROJECT_SOURCE_DIR}/cmake/compiled/compiled.cpp")
    cmake_language(CALL infty_${how} ${library})
    target_compile_options(${library} PRIVATE $<$<CONFIG:Quick>:-O1>
                                      INTERFACE "SHELL:-include infty/model/compiled.hpp")
    target_compile_definitions(${library} PUBLIC INFTY_COMPILED)
  endif()
  target_link_libraries(${target} PRIVATE ${library})
endfunction()

option(INFTY_UNITY_TESTS "Compile several files of tests at once: less to do in all, more for each" OFF)
set(INFTY_UNITY_BATCH 12 CACHE STRING "So many of them at most; 80 may take a compiler 5 GB")
mark_as_advanced(INFTY_UNITY_BATCH)

# infty_unite(TARGET [BATCH]): its files are compiled several at once, if that is asked for, or else so many: what several
# of them instantiate is compiled once. 76 files of tests take two thirds of the time that they take by 18, and the models
# of the examples four tenths.
function(infty_unite target)
  set(batch ${ARGN})
  if(INFTY_UNITY_TESTS)
    set(batch ${INFTY_UNITY_BATCH})
  endif()
  if(batch)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()
