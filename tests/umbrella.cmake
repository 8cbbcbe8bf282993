# Fails unless the header that includes all others does: cmake -DHEADERS=LIST -DUMBRELLA=FILE -P

file(READ "${UMBRELLA}" text)
foreach(header IN LISTS HEADERS)
  string(FIND "${text}" "#include <${header}>" at)
  if(at EQUAL -1)
    message(SEND_ERROR "infty.hpp does not include <${header}>")
  endif()
endforeach()
