# cmake -DPROGRAM=... -DFOLDER=... -P smoke.cmake: every subcommand, small, with every memory; what cannot be is
# refused in words.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
include("${CMAKE_CURRENT_LIST_DIR}/text.cmake")

run(0 printed pretrain ${small} --steps 6 --evaluate-every 4 --dropout .1 --attention-dropout .1 --out base)
if(NOT printed MATCHES "none, [0-9]+ parameters, 0 of them the memory's, 6 steps, .*valid .*test ")
  message(FATAL_ERROR "pretrain prints\n${printed}")
endif()
foreach(name config.json model.safetensors vocab.json merges.txt memory_config.json log.csv results.json)
  if(NOT EXISTS "${FOLDER}/base/${name}")
    message(FATAL_ERROR "pretrain has not written ${name}")
  endif()
endforeach()
# By time: there are steps, and as many when it is said again.
run(0 printed pretrain ${small} --hours .0002 --out timed)
run(0 again pretrain ${small} --hours .0002 --out timed)
same("a run by time" "${printed}" "${again}")

# With every memory; what is trained is what is evaluated.
set(words_none)
set(words_infty --memory-blocks 1)
set(words_sticky --freeze true)
set(words_compressive)
foreach(memory none infty sticky compressive)
  run(0 printed finetune ${tuned} ${rows} --model base --memory ${memory} --steps 4 --epochs 0 --out runs/${memory}
      ${words_${memory}})
  string(REGEX MATCH "test .*" trained "${printed}")
  if(memory STREQUAL none)
    if(NOT printed MATCHES ", 0 of them")
      message(FATAL_ERROR "finetune without a memory prints\n${printed}")
    endif()
  elseif(NOT printed MATCHES ", [1-9][0-9]* of them")
    message(FATAL_ERROR "finetune --memory ${memory} prints\n${printed}")
  endif()
  run(0 printed evaluate --model runs/${memory} --data last --batch 2)
  string(REGEX MATCH "text .*" evaluated "${printed}")
  string(REGEX REPLACE "^test" "text" trained "${trained}")
  same("the test of ${memory}" "${trained}" "${evaluated}")
  run(0 printed perplexity --model runs/${memory} --text last --contexts 8,12 --stride 3 --out windows)
  if(NOT printed MATCHES "\\| 8 \\| 3 \\| [0-9]+ \\| [0-9.]+ \\|.*\\| 12 \\| 3 \\|")
    message(FATAL_ERROR "perplexity prints\n${printed}")
  endif()
  run(0 printed generate --model runs/${memory} --prompt "The caf" --tokens 20 --top-k 5 --interval 8)
  if(NOT printed MATCHES "^The caf" OR NOT errors MATCHES "20 tokens: [0-9]+ tokens/s")
    message(FATAL_ERROR "generate --model ${memory} prints\n${printed}\n${errors}")
  endif()
  run(0 again generate --model runs/${memory} --prompt "The caf" --tokens 20 --top-k 5)
  same("what ${memory} writes" "${printed}" "${again}")
  run(0 printed generate --model runs/${memory} --prompt-file text --prompt "The" --tokens 4 --temperature 0)
endforeach()
run(0 table table --runs runs)
if(NOT table MATCHES "\\| none \\| .*\\| infty \\| .*\\| sticky \\| .*\\| compressive \\| .*no verdict: 1 seed")
  message(FATAL_ERROR "table prints\n${table}")
endif()

run(0 ignored finetune ${tuned} ${rows} --model base --memory none --seed 2 --documents false --steps 4 --out runs/other)
refused("a table is of one model and one text: " table --runs runs)
file(REMOVE_RECURSE "${FOLDER}/runs/other")

# A memory trained alone leaves GPT-2 as it was, bit for bit.
foreach(name base runs/sticky)
  file(SHA256 "${FOLDER}/${name}/model.safetensors" hash)
  list(APPEND hashes "${hash}")
endforeach()
list(GET hashes 0 before)
list(GET hashes 1 behind)
same("GPT-2 with --freeze" "${before}" "${behind}")

# The original's data: whole blocks of one row, 11 predictions of 12 tokens. And articles.
run(0 printed finetune ${tuned} --model base --memory infty --exact true --batch 1 --evaluation-batch 1
    --steps 4 --epochs 0 --out exact)
file(STRINGS "${FOLDER}/exact/log.csv" lines)
list(GET lines 1 first)
if(NOT first MATCHES "^1,0,11,")
  message(FATAL_ERROR "--exact logs ${first}")
endif()
file(WRITE "${FOLDER}/articles" " \n = The café = \n${text} = = The = = \n${text} = Th = \n${text}")
run(0 printed evaluate --model base --data articles --articles true)
if(NOT errors MATCHES " 3 documents")
  message(FATAL_ERROR "--articles finds\n${errors}")
endif()


set(text_of --data text --valid last --test last)
refused("--data is missing" finetune --model base --out other)
refused("config.json: No such file" finetune --data text --model bpe --out other)
refused("--segment is 17: the model has places for 16 tokens" finetune ${text_of} --model base --segment 17
        --out other)
refused("--memory-blocks has 2: blocks rise, and lie in [0, 2)" finetune ${tuned} --model base --memory infty
        --memory-blocks 0,2 --out other)
refused("--memory-blocks goes with --memory infty or sticky" finetune ${tuned} --model base --memory-blocks 0
        --out other)
refused("--freeze needs a --memory" finetune ${tuned} --model base --freeze true --out other)
refused("--basis is 9: it must be a multiple of the 2 --widths" finetune ${text_of} --model base --memory infty
        --segment 8 --basis 9 --out other)
refused("--steps and --hours do not go together" finetune ${tuned} --model base --steps 4 --hours 1 --out other)
refused("--hours and --epochs do not go together" finetune ${tuned} --model base --epochs 1 --hours 1 --out other)
refused("--exact reads block behind block" finetune ${tuned} --model base --exact true --batch 2 --out other)
refused("--memory is compressive: runs/sticky has the weights of sticky, which are none of its" generate
        --model runs/sticky --memory compressive --tokens 2)
refused("--memory is infty: runs/compressive has the weights of compressive" finetune ${tuned} --model
        runs/compressive --memory infty --out other)
run(0 printed generate --model runs/sticky --memory infty --tokens 2)
refused("base holds a run of pretrain: give another --out" finetune ${tuned} --model runs/none --out base)
refused("runs/none holds a run of finetune: give another --out" pretrain ${small} --steps 6 --out runs/none)
refused("--out is --model" finetune ${tuned} --model base --out base)
# All windows are looked at before one is read.
run(1 printed perplexity --model base --text last --contexts 8,17)
same("a table of windows that cannot be" "${printed}" "")
refused("--contexts has 17: without a memory the model sees 16 tokens" perplexity --model base --text last
        --contexts 8,17)
refused("--stride is 9: it must be at most the context, 8" perplexity --model base --text last --contexts 16,8
        --stride 9)
