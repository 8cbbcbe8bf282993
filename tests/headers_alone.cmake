# Compiles every header alone, and counts: cmake -DBUILD=FOLDER -DFOLDER=FOLDER -DCOUNT=N -P
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --target headers_alone RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "A header does not compile alone")
endif()
# A target may be up to date without having compiled what it is to.
file(GLOB_RECURSE objects "${FOLDER}/headers_above_*/alone/*.cpp.o"
     "${FOLDER}/headers_above_*/alone/*.obj")
list(LENGTH objects compiled)
if(compiled LESS COUNT)
  message(FATAL_ERROR "Of ${COUNT} headers ${compiled} were compiled alone")
endif()
