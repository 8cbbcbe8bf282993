# cmake -DPROGRAM=... -DFOLDER=... -DMPIEXEC=... -DNUMPROC=-n -P ranks.cmake: sorting on ranks that MPI starts. One, two, three
# and four of them make the same curves, parameters, optimiser and results, bit for bit, and any number goes on with what
# another has begun.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/ranks.cmake")
set(options --symbols 4 --length 40 --segment 8 --short-term 8 --width 8 --heads 2 --feed-forward 12 --basis 8
            --widths .1,.2 --samples 12 --batch 6 --warmup 4 --evaluation-sequences 10 --bins 16 --dropout .1
            --models infty,sticky --steps 50)
set(sharded ${options} --shards 4)
function(compare other)
  same_files(one ${other} curves.csv attention.csv)
  same_results(one ${other} results.json)
  same_tensors(one-state ${other}-state)
endfunction()

run(0 ignored ${sharded} --out one --save one-state)
foreach(ranks IN ITEMS 2 3 4)
  on_ranks(${ranks} 0 ${sharded} --out on-${ranks} --save on-${ranks}-state)
  compare(on-${ranks})
endforeach()

# Begun by four, stopped, and gone on with by two, whom a signal stops, and by one.
on_ranks(4 0 ${sharded} --out parts --save parts-state --stop-at 20)
says("stopped before step 20 of infty; to go on: ")
file(TOUCH "${FOLDER}/started")
signal_rank(TERM 2 1 "[ parts-state -nt started ]" --resume parts-state --out parts --save-every 1)
says("; to go on: ")
run(0 ignored --resume parts-state --out parts)
compare(parts)

# What cannot be.
on_ranks(5 "[1-9][0-9]*" ${sharded} --out none)
says("--shards is 4, and there are 5 ranks: each needs one shard")
on_ranks(2 "[1-9][0-9]*" --lengths 40,80 --out none)
says("several ranks train, and do nothing else")
on_different_ranks(. --seed=2 ${sharded} --out none)
says("rank 1 of 2 has the settings with the fingerprint")
refused("--shards is 7: it must lie in [0, --batch = 6]" ${options} --shards 7 --out none)
