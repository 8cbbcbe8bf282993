# cmake -DPROGRAM=... -DFOLDER=... -DMPIEXEC=... -DNUMPROC=-n -P ranks.cmake: training on ranks that MPI starts. One, two and
# four of them, and three, make the same log, parameters, optimiser and states, bit for bit; any number goes on with what
# another has begun; what must be the same on all is compared; a rank that is killed or stopped ends all, and is named.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/ranks.cmake")
set(text "")
foreach(i RANGE 1 150)
  string(APPEND text " The house of number ${i} , it 's said , opens at ${i} .\n")
endforeach()
file(WRITE "${FOLDER}/text" "${text}")
string(REPLACE "opens" "sepno" sepno "${text}")
file(WRITE "${FOLDER}/elsewhere/text" "${sepno}")

set(tiny --level char --width 8 --layers 2 --heads 2 --feed-forward 12 --memory-length 8 --widths .1,.2 --samples 8
         --sticky-bins 16 --sub-keys 4 --token-count 2 --batch 10 --segment 6 --warmup 2
         --dropout .1 --data text)
function(compare one other)
  same_files(${one} ${other} log.csv vocabulary.txt)
  same_results(${one} ${other} results.json)
  same_tensors(${one}/checkpoint.safetensors ${other}/checkpoint.safetensors)
endfunction()

# Fifty steps, over the end of the text; eight shards of one row or two. A row may come to its end before others do.
set(sticky train --memory infty-sticky ${tiny} --steps 50 --evaluate-every 20 --shards 8)
run(0 ignored ${sticky} --out one)
foreach(ranks IN ITEMS 2 3 4)
  on_ranks(${ranks} 0 ${sticky} --out on-${ranks})
  compare(one on-${ranks})
endforeach()
if(NOT errors MATCHES "4 ranks, 4 on this machine, of [0-9]+ threads each\n")
  message(FATAL_ERROR "four ranks do not say so:\n${errors}")
endif()

# What cannot be.
on_ranks(4 "[1-9][0-9]*" train --memory xl ${tiny} --steps 6 --evaluate-every 0 --out none)
says("--shards is 0, and there are 4 ranks: each needs one shard")
on_ranks(2 "[1-9][0-9]*" evaluate --model one)
says("several ranks train, and do nothing else")
refused("--shards is 11: it must lie in [0, --batch = 10]" train ${tiny} --steps 6 --evaluate-every 0 --shards 11 --out none)
refused("--reduce fast goes with --shards" train ${tiny} --steps 6 --evaluate-every 0 --reduce fast --out none)
on_different_ranks(. --seed=2 train --memory xl ${tiny} --steps 6 --evaluate-every 0 --shards 2 --out none)
says("rank 1 of 2 has the settings with the fingerprint")
on_different_ranks(elsewhere "" train --memory xl ${tiny} --steps 6 --evaluate-every 0 --shards 2 --out none)
says("rank 1 of 2 has the text with the fingerprint")
if(EXISTS "${FOLDER}/none/checkpoint.safetensors")
  message(FATAL_ERROR "ranks that differ have trained")
endif()

# Other memories, lookups whose queries are normed by the batch, several segments a step, the fast sum.
foreach(words IN ITEMS "xl" "compressive" "none --mixer gated-delta-net" "xl --feed product-keys"
                       "infty --tokens recurrent --bptt 2 --replay true" "titans" "memformer --documents true")
  separate_arguments(words UNIX_COMMAND "${words}")
  foreach(ranks IN ITEMS 1 4)
    on_ranks(${ranks} 0 train --memory ${words} ${tiny} --steps 8 --evaluate-every 0 --shards 4 --out kind-${ranks} --fresh)
  endforeach()
  compare(kind-1 kind-4)
endforeach()
on_ranks(2 0 train --memory xl ${tiny} --steps 6 --evaluate-every 0 --shards 4 --reduce fast --out fast)

# Begun by four, gone on with by two, by one, and by three; SIGTERM to one rank saves and stops all.
set(begun train --memory infty-sticky ${tiny} --steps 50 --evaluate-every 20 --shards 8 --out parts --save-every 1000)
foreach(ranks IN ITEMS 4 2)
  signal_rank(TERM ${ranks} 1 "[ $(wc -l 2>/dev/null <parts/log.csv || echo 0) -gt $((40 / ${ranks})) ]" ${begun} --pause .05)
  says("saved in parts; to go on: ")
  nothing_left()
endforeach()
on_ranks(3 0 ${begun})
compare(one parts)

# A rank that is killed, or stopped: all end within ten seconds, the last checkpoint is whole, and any number of ranks
# goes on from there.
set(begun train --memory infty-sticky ${tiny} --steps 50 --evaluate-every 20 --shards 8 --out parts --save-every 3)
file(REMOVE_RECURSE "${FOLDER}/parts")
set(least 5)
foreach(signal IN ITEMS KILL STOP)
  foreach(victim IN ITEMS 0 2)
    signal_rank(${signal} 4 ${victim} "[ $(wc -l 2>/dev/null <parts/log.csv || echo 0) -gt ${least} ]" ${begun} --pause .1)
    if(signal STREQUAL "STOP")
      says("rank ${victim} has shown no sign of life for ")
    else()
      says("rank ${victim}")
    endif()
    if(seconds GREATER 10)
      message(FATAL_ERROR "SIG${signal} to rank ${victim}: the others end after ${seconds} s")
    endif()
    math(EXPR least "${least} + 7")
  endforeach()
endforeach()
on_ranks(2 0 ${begun})
compare(one parts)
