# cmake -DPROGRAM=... -DFOLDER=... -DMPIEXEC=... -DNUMPROC=-n -P ranks.cmake: a comparison whose runs two and four ranks share
# out, and one that was begun alone, have the runs and the tables of one without; so has one of which a rank was told to end, and another number of them goes on.
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/ranks.cmake")
set(options --symbols 3 --items 2 --copy-gap 5 --keys 3 --values 2 --pairs 2 --recall-gap 4 --width 8 --layers 1
            --feed-forward 8 --parameters 0 --segment 4 --bytes 384 --widths .2 --samples 8 --sticky-bins 4 --batch 3 --steps 12 --warmup 1
            --rates 1e-3,1e-2 --seeds 4,5 --evaluation-sequences 7 --memories none,xl,infty --tasks copy,recall
            --curve-tasks recall --curve-bytes 384,768 --jobs 1)
function(compare other)
  same_files(whole ${other} table.md settings.json curves.csv)
  same_runs(whole ${other})
  nothing_left()
endfunction()

run(0 whole ${options} --out whole)
foreach(ranks IN ITEMS 2 4)
  on_ranks(${ranks} 0 ${options} --out on-${ranks})
  same("what ${ranks} ranks print" "${whole}" "${printed}")
  compare(on-${ranks})
endforeach()

# What is there is kept, whoever has done it, and none is done twice; unfinished files of others are removed at the end.
copy_runs(7 whole parts)
runs_of(whole runs)
list(GET runs 9 unfinished)
file(WRITE "${FOLDER}/parts/runs/${unfinished}.tmp123-0" "of a process that was killed")
on_ranks(2 0 ${options} --out parts)
list(LENGTH runs count)
math(EXPR count "${count} - 7")
says("runs to do: ${count}, about ")
compare(parts)

# SIGTERM to one rank: its runs are saved, all end, and another number of ranks goes on.
set(may_end TRUE)
file(REMOVE_RECURSE "${FOLDER}/parts")
signal_rank(TERM 2 1 "ls parts/runs/*.json >/dev/null 2>&1" ${options} --out parts --save-every 1)
on_ranks(3 0 ${options} --out parts --save-every 1)
compare(parts)
