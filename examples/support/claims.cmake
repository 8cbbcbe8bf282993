# For the scripts that give a PROGRAM files that claim what is not so, and folders that are another
# process's: it must say so, end with 1, and leave everything as it was.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

# snapshot(OUT): all files in FOLDER with what is in them.
function(snapshot out)
  file(GLOB_RECURSE files RELATIVE "${FOLDER}" "${FOLDER}/*")
  set(all "")
  foreach(file IN LISTS files)
    file(SHA256 "${FOLDER}/${file}" hash)
    string(APPEND all "${file} ${hash}\n")
  endforeach()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

# unchanged(TEXT OPTION...): the program says the text, ends with 1 and changes nothing.
function(unchanged text)
  snapshot(before)
  run(1 ignored ${ARGN})
  string(FIND "${errors}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${PROGRAM} ${ARGN} does not say `${text}`:\n${errors}")
  endif()
  snapshot(after)
  same("what is in ${FOLDER}" "${before}" "${after}")
endfunction()

# damaged(FILE TEXT CONTENTS): the same with the script's `options` while a file has other contents.
function(damaged file text contents)
  file(READ "${FOLDER}/${file}" good)
  file(WRITE "${FOLDER}/${file}" "${contents}")
  unchanged("${text}" ${options})
  file(WRITE "${FOLDER}/${file}" "${good}")
endfunction()

# cut(FILE): the same where its end is missing, or all of it.
function(cut file)
  file(READ "${FOLDER}/${file}" good)
  string(LENGTH "${good}" length)
  math(EXPR length "${length} - 5")
  string(SUBSTRING "${good}" 0 ${length} part)
  damaged("${file}" "${file} is damaged" "${part}")
  damaged("${file}" "${file} is damaged" "")
endfunction()

# field(FILE FROM TO TEXT): the same where "FROM, which stands in it, is "TO; TEXT comes behind its name.
function(field file from to text)
  file(READ "${FOLDER}/${file}" good)
  string(REPLACE "\"${from}" "\"${to}" wrong "${good}")
  if(wrong STREQUAL good)
    message(FATAL_ERROR "there is no ${from} in\n${good}")
  endif()
  damaged("${file}" "${file}${text}" "${wrong}")
endfunction()

# held(LOCK WHAT OPTION...): the same while another process holds a lock.
function(held lock what)
  snapshot(before)
  execute_process(COMMAND flock "${lock}" "${PROGRAM}" ${ARGN} WORKING_DIRECTORY "${FOLDER}"
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
  file(REMOVE "${FOLDER}/${lock}")
  string(FIND "${errors}" "${what}: another process" at)
  if(at EQUAL -1 OR NOT status EQUAL 1)
    message(FATAL_ERROR "${PROGRAM} ${ARGN} ends with ${status} where another process writes:\n${errors}")
  endif()
  snapshot(after)
  same("what is in ${FOLDER}" "${before}" "${after}")
endfunction()

# edited(FROM TO OLD NEW): a safetensors file with another header, in which OLD stands.
function(edited from to old new)
  execute_process(
    COMMAND
      perl -e
      [[
        my ($from, $to, $old, $new) = @ARGV;
        open(my $in, '<:raw', $from) or die $from;
        local $/;
        my $all = <$in>;
        my $length = unpack('Q<', $all);
        my $header = substr($all, 8, $length);
        $header =~ s/\Q$old\E/$new/ or die "$from: its header has no $old";
        open(my $out, '>:raw', $to) or die $to;
        print $out pack('Q<', length($header)), $header, substr($all, 8 + $length);
      ]]
      "${from}" "${to}" "${old}" "${new}"
    WORKING_DIRECTORY "${FOLDER}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()
