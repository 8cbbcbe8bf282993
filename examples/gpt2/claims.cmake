# cmake -DPROGRAM=... -DFOLDER=... -P claims.cmake: a run that is not the one in the folder, another process
# there, and files that claim what is not so are refused in words, and nothing is lost.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/claims.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/text.cmake")
run(0 ignored pretrain ${small} --steps 2 --out base)
set(plain finetune ${tuned} ${rows} --model base --epochs 0)
set(tiny ${plain} --memory infty --steps 3)
run(0 trained ${tiny} --out a)

# Other settings, another text, another model.
unchanged("a holds a run with --seed 1, not 2" ${tiny} --seed 2 --out a)
unchanged("a holds a run with --memory \"infty\", not \"sticky\"" ${plain} --memory sticky --steps 3 --out a)
file(WRITE "${FOLDER}/text" "${text}${text}")
unchanged("a holds a run on another text, encoding or model" ${tiny} --out a)
file(WRITE "${FOLDER}/text" "${text}")
file(RENAME "${FOLDER}/base" "${FOLDER}/first")
run(0 ignored pretrain ${small} --steps 2 --seed 9 --out base)
unchanged("a holds a run on another text, encoding or model" ${tiny} --out a)
file(REMOVE_RECURSE "${FOLDER}/base")
file(RENAME "${FOLDER}/first" "${FOLDER}/base")
run(0 again ${tiny} --out a)
same("the report" "${trained}" "${again}")

# Another process.
held(a/.lock a ${tiny} --out a)

# Files that claim what is not so.
set(options evaluate --model a --data text)
file(READ "${FOLDER}/a/memory_config.json" good)
foreach(change IN ITEMS "\"basis\": 8|\"basis\": 10" "\"basis\": 8|\"basis\": -8" "\"memory\": \"infty\"|\"memory\": \"big\""
                        "\"segment\": 12|\"segment\": 1000" "\"tau\": 0.5|\"tau\": 2.0" "\"basis\"|\"bases\"")
  string(REPLACE "|" ";" change "${change}")
  list(GET change 0 old)
  list(GET change 1 new)
  string(REPLACE "${old}" "${new}" wrong "${good}")
  if(wrong STREQUAL good)
    message(FATAL_ERROR "there is no ${old} in\n${good}")
  endif()
  damaged(a/memory_config.json "" "${wrong}")
endforeach()
damaged(a/memory_config.json "memory_config.json is damaged" "{")
file(RENAME "${FOLDER}/a/memory_config.json" "${FOLDER}/mine")
unchanged("a has memory.safetensors, but no memory_config.json" ${options})
file(RENAME "${FOLDER}/mine" "${FOLDER}/a/memory_config.json")
file(RENAME "${FOLDER}/a/memory.safetensors" "${FOLDER}/mine")
unchanged("and there is no memory.safetensors beside it" ${options})
file(RENAME "${FOLDER}/mine" "${FOLDER}/a/memory.safetensors")
# Its last number is NaN.
file(COPY_FILE "${FOLDER}/a/memory.safetensors" "${FOLDER}/mine")
execute_process(COMMAND bash -c "truncate -s -4 memory.safetensors && printf '\\377\\377\\377\\377' >>memory.safetensors"
                WORKING_DIRECTORY "${FOLDER}/a" COMMAND_ERROR_IS_FATAL ANY)
unchanged("a/memory.safetensors: tensor '" ${options})
unchanged("' holds NaN or infinity" ${options})
file(RENAME "${FOLDER}/mine" "${FOLDER}/a/memory.safetensors")
damaged(a/vocab.json "vocab.json" "{\"T\": 1000000000}")
set(options ${tiny} --out a)
damaged(a/results.json "a/results.json is damaged" "{")
