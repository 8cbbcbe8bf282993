# cmake -DPROGRAM=... -DFOLDER=... -P smoke.cmake: every subcommand, small, on every memory and level;
# what cannot be is refused in words.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

# A text for all levels, some of it not ASCII, and a vocabulary of GPT-2's form for it.
set(text "")
foreach(i RANGE 1 150)
  string(APPEND text " The café of number ${i} , it 's said , opens at ${i} .\n")
endforeach()
file(WRITE "${FOLDER}/text" "${text}")
file(MAKE_DIRECTORY "${FOLDER}/bpe")
set(tokens "")
set(id 0)
foreach(symbol IN ITEMS T h e Ġ c a f Ã © o n u m b r , i t ' s d p . Ċ 0 1 2 3 4 5 6 7 8 9 Ġt he Th The)
  string(APPEND tokens "\"${symbol}\": ${id}, ")
  math(EXPR id "${id} + 1")
endforeach()
file(WRITE "${FOLDER}/bpe/encoder.json" "{${tokens}\"<|endoftext|>\": ${id}}")
file(WRITE "${FOLDER}/bpe/vocab.bpe" "#version: 0.2\nĠ t\nh e\nT h\nTh e\n")

set(tiny --width 8 --layers 2 --heads 2 --feed-forward 12 --memory-length 8 --widths .1,.2
         --samples 8 --batch 2 --segment 6 --steps 6 --evaluate-every 4 --evaluation-batch 4
         --sticky-bins 16 --schedule constant)
set(levels word char byte bpe word byte)
set(memories none xl compressive lamemo infty infty-sticky)
foreach(memory level IN ZIP_LISTS memories levels)
  set(bpe)
  if(level STREQUAL bpe)
    set(bpe --bpe bpe)
  endif()
  run(0 printed train ${tiny} --memory ${memory} --level ${level} ${bpe} --data text --out ${memory})
  if(NOT printed MATCHES "test .* tokens \\(${level} level\\).*bits per character.*bits per byte")
    message(FATAL_ERROR "train --memory ${memory} prints\n${printed}")
  endif()
  string(REGEX MATCH "test .*" trained "${printed}")
  run(0 printed evaluate --model ${memory})
  string(REGEX MATCH "test .*" evaluated "${printed}")
  same("the test of ${memory}" "${trained}" "${evaluated}")
  run(0 printed evaluate --model ${memory} --segment 3 --memory-length 12 --split valid --batch 1)
  run(0 printed evaluate --model ${memory} --segment 1)
  if(NOT printed MATCHES " perplexity [0-9.]+ ")
    message(FATAL_ERROR "evaluate --model ${memory} --segment 1 prints\n${printed}")
  endif()
  run(0 printed generate --model ${memory} --prompt "The caf" --tokens 12 --top-k 5 --interval 5)
  if(NOT printed MATCHES "^The caf" OR NOT errors MATCHES "12 tokens: [0-9]+ tokens/s")
    message(FATAL_ERROR "generate --model ${memory} prints\n${printed}\n${errors}")
  endif()
  run(0 again generate --model ${memory} --prompt "The caf" --tokens 12 --top-k 5)
  same("what ${memory} writes" "${printed}" "${again}")
endforeach()
# What is composed while the program runs: every word, and some together.
foreach(words IN ITEMS
        "infty-power" "infty-uniform --block 2" "infty-sticky-mixed --block 2" "infty-learned --block 3"
        "infty-sticky --contraction learned --block 2 --powers 0,1" "infty-gibbs --contraction power"
        "infty-mixed --block 2 --feed engram --tokens recurrent" "infty-power --tokens memory"
        "infty-gibbs" "memorizing" "infini" "titans" "memformer" "none --mixer linear"
        "none --mixer rfa" "none --mixer t2r"
        "none --mixer delta-net" "none --mixer gated-delta-net" "none --mixer memsizer"
        "none --mixer titans-layer" "xl --feed product-keys" "xl --feed memory-plus"
        "xl --feed engram" "xl --tokens memory" "xl --tokens recurrent" "none --tokens associative"
        "compressive --tokens memory" "compressive --feed engram --tokens recurrent"
        "none --mixer gated-delta-net --feed product-keys --tokens associative")
  separate_arguments(chosen UNIX_COMMAND "${words}")
  run(0 printed train ${tiny} --sub-keys 4 --token-count 2 --memory ${chosen} --level char --data text
      --out composed --fresh)
  string(REGEX MATCH "test .*" trained "${printed}")
  run(0 printed evaluate --model composed)
  string(REGEX MATCH "test .*" evaluated "${printed}")
  same("the test of --memory ${words}" "${trained}" "${evaluated}")
  run(0 printed evaluate --model composed --segment 1)
  if(NOT printed MATCHES " perplexity [0-9.]+ ")
    message(FATAL_ERROR "evaluate of --memory ${words} --segment 1 prints\n${printed}")
  endif()
  run(0 printed generate --model composed --prompt "The caf" --tokens 8 --top-k 5)
endforeach()
# Steps of several segments, on one tape or replayed; each token is counted once.
foreach(replay true false)
  run(0 printed train ${tiny} --memory xl --tokens recurrent --token-count 2 --bptt 3 --replay ${replay}
      --dropout .1 --level char --data text --out several-${replay})
  file(STRINGS "${FOLDER}/several-${replay}/log.csv" lines)
  list(GET lines 1 first)
  if(NOT first MATCHES "^1,0,36," OR NOT printed MATCHES " 6 steps, 216 tokens,")
    message(FATAL_ERROR "--bptt 3 --replay ${replay} logs ${first} and prints\n${printed}")
  endif()
  string(REGEX MATCH "test .* ([0-9.]+) nats" ignored "${printed}")
  set(nats_${replay} ${CMAKE_MATCH_1})
endforeach()
string(SUBSTRING "${nats_true}" 0 5 nats_true)
string(SUBSTRING "${nats_false}" 0 5 nats_false)
same("the test of --replay true" "${nats_false}" "${nats_true}")
run(0 table compare ${tiny} --token-count 2 --bptt 2 --replay true --level char --data text
    --memories xl,recurrent --seeds 1 --out pair)
if(NOT table MATCHES "\\| recurrent \\| [0-9]+ ")
  message(FATAL_ERROR "compare --bptt 2 prints\n${table}")
endif()
refused("--replay true goes with --bptt 2 or more" train ${tiny} --replay true --data text --out other)
refused("--replay true and --feed product-keys do not go together" compare ${tiny} --bptt 2 --replay true
        --memories xl,product-keys --data text --out other)
refused("--mixer linear stands in the place of attention" train ${tiny} --memory xl --mixer linear
        --level char --data text --out other)
refused("--memory lamemo, --mixer attention, --feed plain, --tokens memory do not go together" train
        ${tiny} --memory lamemo --tokens memory --level char --data text --out other)
# A prompt is shown as it was typed, whatever it is written in; a model of characters names the one
# that it does not know.
run(0 printed generate --model none --prompt "カフェ é" --tokens 3)
if(NOT printed MATCHES "^カフェ é")
  message(FATAL_ERROR "the prompt is shown as\n${printed}")
endif()
refused("'カ' is none of the" generate --model xl --prompt "caカフェ" --tokens 3)
refused("of 'カ' is none of the" generate --model compressive --prompt "caカフェ" --tokens 3)
refused("it is of 'カ'" generate --model lamemo --prompt "caカフェ" --tokens 3)
file(STRINGS "${FOLDER}/xl/log.csv" lines)
list(LENGTH lines count)
if(NOT count EQUAL 7)
  message(FATAL_ERROR "log.csv has ${count} lines, not 7")
endif()
find_program(gnuplot gnuplot)
if(gnuplot AND NOT EXISTS "${FOLDER}/xl/figure.png")
  message(FATAL_ERROR "there is gnuplot, but no figure")
endif()
run(0 likeliest generate --model infty --tokens 20 --temperature 0)
foreach(choice --top-k=1 --top-p=.000001 --temperature=.0001)
  run(0 printed generate --model infty --tokens 20 ${choice})
  same("the likeliest by ${choice}" "${likeliest}" "${printed}")
endforeach()
run(0 printed evaluate --model infty --text text)

# The papers' settings, and other sizes; each has its memory.
set(presets wikitext103 xl-enwik8 lamemo-text8 compressive-wikitext103)
set(memories infty-sticky xl lamemo compressive)
foreach(preset memory IN ZIP_LISTS presets memories)
  run(0 printed train --preset ${preset} ${tiny} --head-dim 4 --compressed 4 --data text --out ${preset})
  file(READ "${FOLDER}/${preset}/results.json" results)
  if(NOT results MATCHES "\"memory\": \"${memory}\"")
    message(FATAL_ERROR "--preset ${preset} trains\n${results}")
  endif()
endforeach()

# The same command again changes nothing; another one is refused.
run(0 printed train ${tiny} --memory xl --level char --data text --out xl)
if(NOT errors MATCHES "xl is finished")
  message(FATAL_ERROR "a finished run is run again:\n${errors}")
endif()
refused("holds a run with --seed 1, not 2" train ${tiny} --memory xl --level char --data text --out xl
        --seed 2)

# as_large(TABLE MEMORY OTHER): a table of compare has these two, with as many parameters as nearly as can be.
function(as_large table memory other)
  if(NOT table MATCHES "\\| ${memory} \\| ([0-9]+) .*\\| ${other} \\| ([0-9]+) ")
    message(FATAL_ERROR "compare prints\n${table}")
  endif()
  math(EXPR lacking "${CMAKE_MATCH_2} - ${CMAKE_MATCH_1}")
  if(lacking GREATER 17 OR lacking LESS -17)
    message(FATAL_ERROR "${memory} has ${CMAKE_MATCH_1} parameters, ${other} ${CMAKE_MATCH_2}")
  endif()
endfunction()

# A folder of documents, which are kept apart; then the table.
file(MAKE_DIRECTORY "${FOLDER}/books")
foreach(i RANGE 1 5)
  file(WRITE "${FOLDER}/books/${i}.txt" "${text}")
endforeach()
run(0 table compare ${tiny} --level byte --data books --documents true --memories none,infty --seeds 2
    --out both)
as_large("${table}" none infty)
run(0 again compare ${tiny} --level byte --data books --documents true --memories none,infty --seeds 2
    --out both)
same("the table" "${table}" "${again}")
if(errors MATCHES "started")
  message(FATAL_ERROR "finished runs are run again:\n${errors}")
endif()

# A lookup in the place of one of two feed-forward layers: the other is widened for both.
run(0 wide compare ${tiny} --level byte --data books --sub-keys 8 --memories product-keys,engram --seeds 1
    --out wide)
as_large("${wide}" product-keys engram)

# Two seeds tell nothing apart, three may; what is compared was fixed beforehand.
if(NOT table MATCHES "\\| test \\| infty - none \\| [^|]*, [^|]* \\| [^|]* \\| none \\| no verdict: 2 seeds \\|")
  message(FATAL_ERROR "compare with two seeds says\n${table}")
endif()
run(0 table compare ${tiny} --level byte --data books --documents true --memories none,infty --seeds 1
    --out both)
if(NOT table MATCHES "no verdict: 1 seed \\|" OR table MATCHES "±")
  message(FATAL_ERROR "compare with one seed says\n${table}")
endif()
run(0 table compare ${tiny} --level byte --data books --documents true --memories none,infty --seeds 3
    --out both)
if(NOT table MATCHES "\\[[-+][0-9.]+, [-+][0-9.]+\\] \\| [^\n]*\\|\n\n.*mean ± 4.3 standard errors"
   OR NOT table MATCHES "5 % of such tables at most")
  message(FATAL_ERROR "compare with three seeds says\n${table}")
endif()

refused("memory: foo not in" train --memory foo)
refused("none.txt: no such file" train ${tiny} --data none.txt --out other)
file(WRITE "${FOLDER}/empty" "")
refused("empty: there is no text in it" train ${tiny} --data empty --out other)
file(WRITE "${FOLDER}/short" "a")
refused("too short" train ${tiny} --data short --out other)
refused("--steps is 9: it must be above --warmup = 100" train --steps 9 --out other)
run(0 printed bpe --data text --out learned --tokens 300 --names "<|endoftext|>,<doc>")
if(NOT printed MATCHES "298 tokens and 2 names of [0-9]+ bytes, in learned: train --level bpe --bpe learned")
  message(FATAL_ERROR "bpe prints\n${printed}")
endif()
run(0 printed train ${tiny} --memory none --level bpe --bpe learned --data text --out of-learned)
string(REGEX MATCH "test .*" trained "${printed}")
run(0 printed evaluate --model of-learned)
string(REGEX MATCH "test .*" evaluated "${printed}")
same("the test with learned byte pairs" "${trained}" "${evaluated}")
refused("bpe needs --data" bpe --out other)
refused("tokens is 257: it must be at least 258" bpe --data text --out other --tokens 257 --names "a,b")
refused("encoder.json: No such file" train ${tiny} --level bpe --bpe . --data text --out other)
refused("[train_step] step 1: [Layers] layer 0: [read] what is read is not finite" train ${tiny} --rate 1e30 --data text --out other)
refused("other/checkpoint.safetensors: No such file" evaluate --model other)
