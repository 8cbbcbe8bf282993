# infty::compiled, a static library of what costs programs most to instantiate (include/infty/*/compiled.hpp). Its flags
# are public: who links it must be compiled with the same.

set(INFTY_COMPILED_FLAGS "" CACHE STRING "Options, a list, of infty::compiled and all that link it, such as -march=native")
add_library(infty_compiled STATIC "${PROJECT_SOURCE_DIR}/cmake/compiled/compiled.cpp")
add_library(infty::compiled ALIAS infty_compiled)
set_target_properties(infty_compiled PROPERTIES EXPORT_NAME compiled POSITION_INDEPENDENT_CODE ON)
target_compile_definitions(infty_compiled PUBLIC INFTY_COMPILED)
target_compile_options(infty_compiled PUBLIC ${INFTY_COMPILED_FLAGS})
target_link_libraries(infty_compiled PUBLIC infty)
