# Runs that are killed and started again are kept where they were finished, go on where not, and end with the
# table of those that nobody disturbed.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
set(options --nouns 3 --adjectives 2 --verbs 2 --clauses 2 --modifiers 1 --width 8 --layers 1 --heads 2
            --feed-forward 8 --token-count 2 --slots 3 --self-slots 2 --batch 3 --steps 12 --warmup 1 --seeds 4,5
            --evaluation-sequences 7 --beam 2)

function(words out threads)
  keeps_runs(parts)
  set(${out} ${options} --out parts --jobs ${threads} --save-every 1 PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts table.md settings.json)
  same_runs(whole parts)
endfunction()

kill_often("translation" ${options} --out whole --jobs 1 --save-every 1)

# Ctrl-C saves inside of a run, and says how to go on.
string(REPLACE "--steps;12" "--steps;400" long "${options}")
interrupt_runs(${long} --forms plain,memsizer)
