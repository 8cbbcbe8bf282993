# cmake -DPROGRAM=... -DFOLDER=... -DMPIEXEC=... -DNUMPROC=-n -P ranks.cmake: sorting on ranks that MPI starts. One, two, three
# and four of them make the same curves, parameters, optimiser and results, bit for bit, and any number goes on with what
# another has begun.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/tiny_on_ranks.cmake")
run(0 ignored ${sharded} --out one --save one-state)
set(with_2 --bucket 25)
set(with_3 --bucket .002 --zero)
set(with_4 --bucket .003)
foreach(ranks IN ITEMS 2 3 4)
  on_ranks(${ranks} 0 ${sharded} ${with_${ranks}} --out on-${ranks} --save on-${ranks}-state)
  compare(on-${ranks})
endforeach()

# Begun by four, stopped, and gone on with by two, whom a signal stops, and by one.
on_ranks(4 0 ${sharded} --out parts --save parts-state --stop-at 20 --zero)
says("stopped before step 20 of infty; to go on: ")
file(TOUCH "${FOLDER}/started")
signal_rank(TERM 2 1 "[ parts-state -nt started ]" --resume parts-state --out parts --save-every 1)
says("; to go on: ")
run(0 ignored --resume parts-state --out parts)
compare(parts)

# A rank that is killed, or stopped: all end within ten seconds behind a line that names it, the file is whole, and any number
# of ranks goes on from there.
file(REMOVE "${FOLDER}/parts-state")
set(begun ${sharded} --save parts-state)
foreach(signal IN ITEMS KILL STOP)
  file(TOUCH "${FOLDER}/started")
  signal_rank(${signal} 3 1 "[ parts-state -nt started ]" ${begun} --out parts --save-every 1 --silence 3)
  if(signal STREQUAL "STOP")
    says("sorting: rank 1 has shown no sign of life for ")
  elseif(NOT launcher MATCHES "HYDRA")
    says("rank 1")
  endif()
  set(begun --resume parts-state)
endforeach()
run(0 ignored --resume parts-state --out parts)
compare(parts)

# A signal while the first rank evaluates and the others wait: what is trained is saved, where it was asked for or not.
set(few --symbols 4 --length 40 --segment 8 --short-term 8 --width 8 --heads 2 --feed-forward 12 --basis 8 --widths .1,.2
        --samples 12 --batch 6 --warmup 2 --bins 16 --models infty --steps 4 --shards 4)
set(endless ${few} --evaluation-sequences 10000000 --out evaluated)
signal_rank(TERM 3 0 "[ -e evaluated/.lock ] && sleep 2" ${endless})
says("; to go on: mpirun -n 3 ")
nothing_left()
file(REMOVE "${FOLDER}/evaluated/interrupted.safetensors")
signal_rank(TERM 3 0 "grep -aqE 'accuracy.{4}([0-9.]+,){3}' evaluated-state && sleep .5" ${endless} --save evaluated-state)
says("stopped evaluating infty, which is trained; to go on: mpirun -n 3 ")
nothing_left()
file(TOUCH "${FOLDER}/started")
signal_rank(TERM 2 0 "[ evaluated-state -nt started ] && sleep .5" --resume evaluated-state --out evaluated)
says("stopped evaluating infty, which is trained; to go on: mpirun -n 2 ")

# Started alone, whatever a launcher has left in the environment, it does not ask MPI for anything.
set(ENV{PMIX_RANK} 0)
run(0 ignored ${few} --evaluation-sequences 10 --out alone)
unset(ENV{PMIX_RANK})
on_ranks(1 0 ${few} --evaluation-sequences 10 --out alone)
string(FIND "${errors}" "on this machine" at)
if(NOT at EQUAL -1)
  message(FATAL_ERROR "one rank has asked MPI:\n${errors}")
endif()

# threads_are(THREADS OPTION...): so many has each of two ranks.
function(threads_are wanted)
  on_ranks(2 0 ${few} --evaluation-sequences 10 --out threads ${ARGN})
  says("2 ranks, 2 on this machine, of ${wanted} threads each")
endfunction()
threads_are(3 --threads 3)
set(ENV{OMP_NUM_THREADS} 5)
threads_are(5)
threads_are(3 --threads 3)
unset(ENV{OMP_NUM_THREADS})

# What cannot be.
on_ranks(5 "[1-9][0-9]*" ${sharded} --out none)
says("--shards is 4, and there are 5 ranks: each needs one shard")
on_ranks(2 "[1-9][0-9]*" --lengths 40,80 --out none)
says("several ranks train, and do nothing else")
foreach(words IN ITEMS "--save;none-state" "--stop-at;5;--save;none-state")
  on_ranks(2 "[1-9][0-9]*" --lengths 40,80 --out none ${words})
  says("is not of a comparison at several lengths: leave it out")
endforeach()
on_different_ranks(. --seed=2 ${sharded} --out none)
says("rank 1 of 2 has the settings with the fingerprint")
refused("--shards is 7: it must lie in [0, --batch = 6]" ${options} --shards 7 --out none)
