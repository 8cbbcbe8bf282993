# For the scripts of this folder that train on ranks: what starts and stops these, a text, the options of a run that takes a
# second, and what two runs must have in common.
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/ranks.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/text.cmake")
set(tiny --level char --width 8 --layers 2 --heads 2 --feed-forward 12 --memory-length 8 --widths .1,.2 --samples 8
         --sticky-bins 16 --sub-keys 4 --token-count 2 --batch 10 --segment 6 --warmup 2 --dropout .1 --data text)

# compare(ONE OTHER): two folders hold the same run, bit for bit but for its times.
function(compare one other)
  same_files(${one} ${other} log.csv vocabulary.txt)
  same_results(${one} ${other} results.json)
  same_tensors(${one}/checkpoint.safetensors ${other}/checkpoint.safetensors)
endfunction()
