# For the scripts that try a PROGRAM whose finished runs are files of FOLDER/*/runs.

# runs_of(FOLDER OUT): their names, in order.
function(runs_of folder out)
  file(GLOB files RELATIVE "${FOLDER}/${folder}/runs" "${FOLDER}/${folder}/runs/*.json")
  list(SORT files)
  set(${out} "${files}" PARENT_SCOPE)
endfunction()

# copy_runs(COUNT A B): gives the second folder so many runs of the first one, by the order of their names, as if a comparison
# had been stopped there.
function(copy_runs count a b)
  runs_of(${a} runs)
  list(SUBLIST runs 0 ${count} runs)
  foreach(run IN LISTS runs)
    file(COPY "${FOLDER}/${a}/runs/${run}" DESTINATION "${FOLDER}/${b}/runs")
  endforeach()
endfunction()

# read_runs(FOLDER OUT): its finished runs without their times, sorted by their names.
function(read_runs folder out)
  runs_of(${folder} files)
  set(runs)
  foreach(file IN LISTS files)
    file(READ "${FOLDER}/${folder}/runs/${file}" run)
    string(REGEX REPLACE "\"([a-z_]*_)?seconds\": [^\n]*" "" run "${run}")
    string(REGEX REPLACE "[\n;]" "" run "${file} ${run}")
    list(APPEND runs "${run}")
  endforeach()
  set(${out} "${runs}" PARENT_SCOPE)
endfunction()

# keeps_runs(FOLDER): whatever was finished there when this was called the last time is there still, as it was.
# forget_runs(): begins anew.
function(keeps_runs folder)
  read_runs(${folder} there)
  get_property(before GLOBAL PROPERTY runs_before)
  foreach(run IN LISTS before)
    if(NOT run IN_LIST there)
      message(FATAL_ERROR "the finished run ${run} is lost")
    endif()
  endforeach()
  set_property(GLOBAL PROPERTY runs_before "${there}")
endfunction()
function(forget_runs)
  set_property(GLOBAL PROPERTY runs_before "")
endfunction()

# same_runs(A B): two folders have the same finished runs, but for their times, and the second has nothing of
# unfinished ones.
function(same_runs a b)
  read_runs(${a} one)
  read_runs(${b} other)
  same("${b}/runs" "${one}" "${other}")
  file(GLOB left "${FOLDER}/${b}/runs/*.safetensors")
  if(left)
    message(FATAL_ERROR "finished runs have left ${left}")
  endif()
endfunction()
