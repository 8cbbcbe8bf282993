# For the scripts that kill a PROGRAM in a FOLDER at random moments and compare what it made with what it
# makes when nobody disturbs it: cmake -DPROGRAM=... -DFOLDER=... [-DKILLS=N] -P kill.cmake
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/finished_runs.cmake")
if(NOT KILLS)
  set(KILLS 3)
endif()
set(ENV{OMP_WAIT_POLICY} PASSIVE)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

# now(OUT): milliseconds.
function(now out)
  execute_process(COMMAND date +%s%3N OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${out} "${time}" PARENT_SCOPE)
endfunction()

# below(LIMIT OUT): a random number of 0 to LIMIT - 1.
function(below limit out)
  string(RANDOM LENGTH 6 ALPHABET 0123456789 digits)
  math(EXPR number "1${digits} % ${limit}")
  set(${out} "${number}" PARENT_SCOPE)
endfunction()

# same_files(A B NAME...): these files of two folders are the same.
function(same_files a b)
  foreach(name IN LISTS ARGN)
    file(READ "${FOLDER}/${a}/${name}" one)
    file(READ "${FOLDER}/${b}/${name}" other)
    same("${b}/${name}" "${one}" "${other}")
  endforeach()
endfunction()

# same_results(A B NAME): these JSON files are, but for times and the memory of the process.
function(same_results a b name)
  foreach(side a b)
    file(READ "${FOLDER}/${${side}}/${name}" json)
    string(REGEX REPLACE "\"(seconds|[a-z_]*_seconds?|peak[a-z_]*bytes)\": [^\n]*" "" ${side}_json "${json}")
  endforeach()
  same("${b}/${name}" "${a_json}" "${b_json}")
endfunction()

# same_tensors(A B): two safetensors files are the same bit for bit, but for the header, which has times.
function(same_tensors a b)
  foreach(side a b)
    file(READ "${FOLDER}/${${side}}" bytes LIMIT 8 HEX)
    string(REGEX REPLACE "(..)(..)(..)(..)(..)(..)(..)(..)" "0x\\8\\7\\6\\5\\4\\3\\2\\1" length "${bytes}")
    math(EXPR ${side}_data "${length} + 8")
  endforeach()
  execute_process(COMMAND cmp -i "${a_data}:${b_data}" "${a}" "${b}" WORKING_DIRECTORY "${FOLDER}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE difference ERROR_VARIABLE difference)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the tensors of ${b} differ from those of ${a}: ${difference}")
  endif()
endfunction()

# nothing_left(): neither an unfinished file nor a lock.
function(nothing_left)
  file(GLOB_RECURSE left "${FOLDER}/*.tmp[0-9]*" "${FOLDER}/*.lock" "${FOLDER}/.lock")
  if(left)
    message(FATAL_ERROR "files were left: ${left}")
  endif()
endfunction()

# clean(): removes what the program makes in the folder `parts`. A script with more to remove has its own.
function(clean)
  forget_runs()
  file(REMOVE_RECURSE "${FOLDER}/parts")
endfunction()

# kill_often(NAME OPTION...): runs the program whole, with options by which it writes to a new folder
# `whole`, to know how long that takes. Then starts it and kills it at a random moment of such a time, again
# and again in the same folder `parts` until it is done, compares, and begins anew, until it has been killed
# KILLS times; the last run is left to end. The script has
#   words(OUT THREADS): the options to begin with or to go on by;
#   compare(): what holds when the program is done.
function(kill_often name)
  file(REMOVE_RECURSE "${FOLDER}/whole")
  now(begin)
  run(0 ignored ${ARGN})
  now(end)
  math(EXPR milliseconds "${end} - ${begin}")
  set(killed 0)
  set(compared 0)
  set(compared_at 0)
  clean()
  while(TRUE)
    below(2 threads)
    math(EXPR threads "${threads} + 1")
    words(its_words ${threads})
    if(killed EQUAL KILLS)
      run(0 ignored ${its_words})
    else()
      below(${milliseconds} wait)
      math(EXPR seconds "${wait} / 1000")
      math(EXPR rest "${wait} % 1000 + 1000")
      string(SUBSTRING "${rest}" 1 3 rest)
      execute_process(
        COMMAND bash -c "\"$@\" & sleep ${seconds}.${rest}; kill -9 $! 2>/dev/null; wait $!" "${name}"
                "${PROGRAM}" ${its_words}
        WORKING_DIRECTORY "${FOLDER}"
        RESULT_VARIABLE status
        OUTPUT_QUIET
        ERROR_VARIABLE errors)
      if(status EQUAL 137)
        math(EXPR killed "${killed} + 1")
        continue()
      elseif(NOT status EQUAL 0)
        message(FATAL_ERROR "${name}, killed ${killed} times, ends with ${status}:\n${errors}")
      endif()
    endif()
    compare()
    nothing_left()
    math(EXPR compared "${compared} + 1")
    if(killed EQUAL KILLS)
      break()
    endif()
    # Where kills never come, the program is faster than it was: sooner, then.
    if(compared_at EQUAL killed)
      math(EXPR milliseconds "${milliseconds} * 3 / 4 + 1")
    endif()
    set(compared_at ${killed})
    clean()
  endwhile()
  message(STATUS "${name}: killed ${killed} times, ${compared} runs compared, no difference")
endfunction()

# go_on(SAID): runs the command by which the program has said that it goes on, which must end with 0.
function(go_on said)
  if(NOT said MATCHES "; to go on: ([^\n]+)")
    message(FATAL_ERROR "it does not say how to go on:\n${said}")
  endif()
  execute_process(COMMAND bash -c "${CMAKE_MATCH_1}" WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status
                  OUTPUT_QUIET ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${CMAKE_MATCH_1}\nends with ${status}:\n${errors}")
  endif()
endfunction()

# interrupt(SIGNAL STATUS CONDITION OUT OPTION...): sends the signal when the shell's condition holds, to the
# program or, where to_all is "-", to all of its group, as a system's end does; the program must end with the
# status. What it says comes back.
function(interrupt signal wanted condition out)
  execute_process(
    COMMAND
      bash -c
      "set -m; \"$@\" & for i in {1..1000}; do ${condition} && break; sleep .02; done; kill -${signal} -- ${to_all}$!; wait $!"
      interrupt "${PROGRAM}" ${ARGN}
    WORKING_DIRECTORY "${FOLDER}"
    RESULT_VARIABLE status
    OUTPUT_QUIET
    ERROR_VARIABLE errors)
  if(NOT status EQUAL wanted)
    message(FATAL_ERROR "SIG${signal} ends ${PROGRAM} ${ARGN} with ${status}, not ${wanted}:\n${errors}")
  endif()
  set(${out} "${errors}" PARENT_SCOPE)
endfunction()

# interrupt_runs(OPTION...): a comparison that Ctrl-C stops inside of its runs saves them, says how to go on,
# and goes on to what one is that nobody disturbed.
set(run_saved "ls parts/runs/*.safetensors >/dev/null 2>&1")
function(interrupt_runs)
  file(REMOVE_RECURSE "${FOLDER}/whole")
  run(0 ignored ${ARGN} --out whole --jobs 2)
  clean()
  interrupt(INT 130 "${run_saved}" said ${ARGN} --out parts --jobs 2 --save-every 3)
  if(NOT said MATCHES "stopped, all saved in parts; to go on: ")
    message(FATAL_ERROR "SIGINT: it says\n${said}")
  endif()
  nothing_left()
  file(GLOB saved "${FOLDER}/parts/runs/*.safetensors")
  if(NOT saved)
    message(FATAL_ERROR "SIGINT has saved no run")
  endif()
  go_on("${said}")
  compare()
endfunction()
