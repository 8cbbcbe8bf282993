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
             model/log.csv model/vocabulary.txt)
  same_results(whole/model parts/model results.json)
  same_tensors(whole/model/checkpoint.safetensors parts/model/checkpoint.safetensors)
endfunction()
function(clean)
  file(REMOVE_RECURSE "${FOLDER}/parts")
endfunction()

now(begin)
run(0 ignored ${options} --out whole --save-every 1 --threads 1)
now(end)
math(EXPR milliseconds "${end} - ${begin}")
kill_often("memory_study" ${milliseconds})
