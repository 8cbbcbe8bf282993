# A training that is killed, or interrupted, and started again each time has the log, the model and the
# results of one that was not, bit for bit.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/kill.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/text.cmake")
run(0 ignored pretrain ${small} --steps 4 --dropout .1 --attention-dropout .1 --out base)
set(options finetune ${tuned} ${rows} --model base --memory sticky --steps 40 --epochs 0 --evaluate-every 10)

function(words out threads)
  set(${out} ${options} --out parts --save-every 1 --threads ${threads} PARENT_SCOPE)
endfunction()
function(compare)
  same_files(whole parts log.csv vocab.json merges.txt config.json memory_config.json)
  same_results(whole parts results.json)
  same_tensors(whole/checkpoint.safetensors parts/checkpoint.safetensors)
  same_tensors(whole/model.safetensors parts/model.safetensors)
  same_tensors(whole/memory.safetensors parts/memory.safetensors)
endfunction()

kill_often("gpt2 finetune" ${options} --out whole --save-every 1 --threads 1)

# Ctrl-C saves and says how to go on.
clean()
interrupt(INT 130 "[ $(wc -l 2>/dev/null <parts/log.csv || echo 0) -gt 5 ]" said ${options} --out parts
          --save-every 1000 --pause .05)
if(NOT said MATCHES "stopped behind step ([0-9]+) of 40, saved in parts; to go on: ")
  message(FATAL_ERROR "SIGINT: it says\n${said}")
endif()
nothing_left()
go_on("${said}")
compare()
interrupt(INT 130 "sleep 1" said pretrain ${small} --hours .1 --out timed)
if(NOT said MATCHES "stopped measuring the speed of steps; nothing is saved")
  message(FATAL_ERROR "pretrain --hours, interrupted, says\n${said}")
endif()
interrupt(INT 130 "sleep 1" said generate --model parts --tokens 100000000 --ignore-eos true)
if(NOT said MATCHES "stopped behind [0-9]+ of 100000000 tokens")
  message(FATAL_ERROR "generate, interrupted, says\n${said}")
endif()
