# What options may be. Included by the build tree and by the installed package.

# Stops if an option has any other value than these; a small `auto` becomes AUTO, which is what is asked for below.
function(infty_check_choice option)
  string(TOUPPER "${${option}}" value)
  if(NOT value MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|YES|NO|1|0)$")
    message(FATAL_ERROR "infty: ${option} is '${${option}}': it must be AUTO, ON or OFF")
  endif()
  if(value STREQUAL "AUTO")
    set(${option} AUTO PARENT_SCOPE)
  endif()
endfunction()

# infty_check_switches(OPTION...): stops if one is neither on nor off: if() would take it for OFF and say nothing.
function(infty_check_switches)
  foreach(option IN LISTS ARGN)
    string(TOUPPER "${${option}}" value)
    if(NOT value MATCHES "^(ON|OFF|TRUE|FALSE|YES|NO|Y|N|1|0)$")
      message(FATAL_ERROR "infty: ${option} is '${${option}}': it must be ON or OFF")
    endif()
  endforeach()
endfunction()
