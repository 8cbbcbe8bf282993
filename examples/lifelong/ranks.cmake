# cmake -DPROGRAM=... -DFOLDER=... -DMPIEXEC=... -DNUMPROC=-n -P ranks.cmake: a comparison whose runs two and four ranks share
# out, behind an encoder that the first has had read, has the runs and the tables of one without.
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../support/ranks.cmake")
set(options --tasks 3 --classes 2 --training 24 --test 6 --length 5 --topic-words 3 --class-words 2 --fillers 4 --width 8
            --layers 1 --heads 2 --feed-forward 8 --batch 4 --interval 8 --neighbours 3 --adaptation-steps 2 --orders 1,2
            --seeds 4,5 --methods sequential,replay,mbpa++ --pretrain 30 --pretrain-batch 4 --jobs 1)
run(0 ignored ${options} --out whole)
foreach(ranks IN ITEMS 2 4)
  on_ranks(${ranks} 0 ${options} --out on-${ranks})
  same_files(whole on-${ranks} table.md settings.json matrix.csv)
  same_runs(whole on-${ranks})
  nothing_left()
endforeach()

# A part is there, the encoder, too: the rest is done, and nothing twice.
copy_runs(5 whole parts)
file(COPY "${FOLDER}/whole/encoder.safetensors" DESTINATION "${FOLDER}/parts")
on_ranks(2 0 ${options} --out parts)
same_files(whole parts table.md settings.json matrix.csv encoder.safetensors)
same_runs(whole parts)
string(REGEX MATCHALL "runs to do: [0-9]+" said "${errors}")
string(REGEX REPLACE "[^0-9;]" "" said "${said}")
list(JOIN said " + " sum)
math(EXPR sum "${sum}")
same("what ranks have done" "${sum}" "7")
