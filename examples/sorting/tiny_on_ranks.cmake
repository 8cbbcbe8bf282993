# For the scripts of this folder that train on ranks: what starts and stops these, the options of a run that takes a second,
# and what two runs must have in common.
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/ranks.cmake")
set(options --symbols 4 --length 40 --segment 8 --short-term 8 --width 8 --heads 2 --feed-forward 12 --basis 8
            --widths .1,.2 --samples 12 --batch 6 --warmup 4 --evaluation-sequences 10 --bins 16 --dropout .1
            --models infty,sticky --steps 50)
set(sharded ${options} --shards 4)

# compare(OTHER): what the folder and the file of that name hold is what `one` has, bit for bit but for its times.
function(compare other)
  same_files(one ${other} curves.csv attention.csv)
  same_results(one ${other} results.json)
  same_tensors(one-state ${other}-state)
endfunction()
