# A study that is killed and started again goes on with the training of its model; all figures are those of
# one that was not.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
set(options --data text --steps 8 --words 150 --documents 1 --bins 20 --basis 2,4 --sorting-steps 2
            --sorting-length 70)
set(text "")
foreach(i RANGE 1 400)
  string(APPEND text " A <b> of number ${i} , it 's said , opens at ${i} .\n")
endforeach()
file(WRITE "${FOLDER}/text" "${text}")

function(words out threads)
  set(${out} ${options} --out parts --save-every 1 --threads ${threads} PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts attention.csv space.csv basis.csv page.html attention.gp space.gp basis.gp
             memory_share_words.csv memory_share_words.gp
             model/log.csv model/vocabulary.txt)
  same_results(whole/model parts/model results.json)
  same_tensors(whole/model/checkpoint.safetensors parts/model/checkpoint.safetensors)
endfunction()

kill_often("memory_study" ${options} --out whole --save-every 1 --threads 1)

# Ctrl-C saves the sorting models, too, and says how to go on.
string(REPLACE "--sorting-steps;2" "--sorting-steps;40" long "${options}")
run(0 ignored ${long} --out whole --no-text)
clean()
interrupt(INT 130 "ls parts/basis-*.safetensors >/dev/null 2>&1" said ${long} --out parts --no-text --save-every 3)
if(NOT said MATCHES "stopped, what is trained is saved in parts; to go on: ")
  message(FATAL_ERROR "SIGINT: it says\n${said}")
endif()
nothing_left()
file(GLOB saved "${FOLDER}/parts/basis-*.safetensors")
if(NOT saved)
  message(FATAL_ERROR "SIGINT has saved no model")
endif()
go_on("${said}")
same_files(whole parts basis.csv basis.gp)
file(GLOB saved "${FOLDER}/parts/basis-*.safetensors")
if(saved)
  message(FATAL_ERROR "a finished study leaves ${saved}")
endif()
