# CITATION.cff names the project's version and the paper.

foreach(line IN ITEMS "^version: ${VERSION}$" "^ +value: arXiv:2109\\.00301$")
  file(STRINGS "${INFTY}/CITATION.cff" found REGEX "${line}")
  if(NOT found)
    message(SEND_ERROR "CITATION.cff has no line '${line}'")
  endif()
endforeach()
