# cmake -DPROGRAM=... -DFOLDER=... -P smoke.cmake: every figure, small, of a model that the program trains
# and once more of the same one; what cannot be is refused in words.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(text "")
foreach(i RANGE 1 700)
  string(APPEND text " A <b> of number ${i} , it 's said , opens at ${i} .\n")
endforeach()
file(WRITE "${FOLDER}/text" "${text}")

run(0 first --data text --out first --steps 3 --words 300 --documents 2 --bins 20 --basis 2,4
    --sorting-steps 2 --sorting-length 70)
find_program(gnuplot gnuplot)
foreach(name attention space basis)
  if(NOT EXISTS "${FOLDER}/first/${name}.csv")
    message(FATAL_ERROR "there is no ${name}.csv")
  endif()
  if(gnuplot AND NOT EXISTS "${FOLDER}/first/${name}.png")
    message(FATAL_ERROR "there is gnuplot, but no ${name}.png:\n${errors}")
  endif()
endforeach()
# Three layers of 20 bins and a header.
file(STRINGS "${FOLDER}/first/attention.csv" rows)
list(LENGTH rows count)
if(NOT count EQUAL 61)
  message(FATAL_ERROR "attention.csv has ${count} lines, not 61")
endif()
file(READ "${FOLDER}/first/page.html" page)
if(NOT page MATCHES "class=\"word\">[^<]+</span>" OR NOT page MATCHES "&lt;b&gt;" OR page MATCHES "<b> of")
  message(FATAL_ERROR "page.html does not show the text as it is")
endif()

run(0 again --model first/model --out again --words 300 --documents 2 --bins 20 --no-sorting)
string(FIND "${first}" "${again}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "the same model is told otherwise:\n${first}\n${again}")
endif()

# A density of any shape, the same views; a memory of single vectors, how far back it retrieves.
run(0 ignored --memory infty-gibbs --data text --out gibbs --steps 3 --words 300 --documents 2 --bins 20
    --no-sorting)
file(STRINGS "${FOLDER}/gibbs/attention.csv" rows)
list(LENGTH rows count)
if(NOT count EQUAL 61 OR NOT EXISTS "${FOLDER}/gibbs/page.html" OR EXISTS "${FOLDER}/gibbs/space.csv")
  message(FATAL_ERROR "--memory infty-gibbs: attention.csv has ${count} lines, or other files are wrong")
endif()
run(0 printed --memory memorizing --data text --out retrieved --steps 3 --words 300 --documents 2
    --no-sorting)
if(NOT printed MATCHES "layer 3: half of it within [0-9]+ tokens \\([0-9]+\\); [0-9.]+ % the same token")
  message(FATAL_ERROR "--memory memorizing prints\n${printed}")
endif()
file(STRINGS "${FOLDER}/retrieved/retrieved.csv" rows)
list(GET rows 0 header)
list(GET rows 1 first)
if(NOT header STREQUAL "layer,from,to,share,by_chance" OR NOT first MATCHES "^1,1,2,")
  message(FATAL_ERROR "retrieved.csv begins with\n${header}\n${first}")
endif()
refused("nothing is retrieved" --model retrieved/model --out again --words 20 --no-sorting)

# What layers show of all other memories, by the same code: a line of names, a number in every other.
string(SUBSTRING "${text}" 0 12000 short)
file(WRITE "${FOLDER}/short" "${short}")
function(shows word)
  run(0 ignored --memory ${word} --data short --out "${word}" --steps 1 --words 70 --documents 1 --no-sorting
      --threads 1)
  while(ARGN)
    list(POP_FRONT ARGN name wanted_header wanted)
    file(STRINGS "${FOLDER}/${word}/${name}.csv" rows)
    list(POP_FRONT rows header)
    list(LENGTH rows count)
    string(REPLACE "-" "," wanted_header "${wanted_header}")
    if(NOT header STREQUAL wanted_header OR NOT count EQUAL wanted)
      message(FATAL_ERROR "--memory ${word}: ${name}.csv has ${count} numbers by ${header}, not ${wanted} "
                          "by ${wanted_header}")
    endif()
    if(gnuplot AND NOT EXISTS "${FOLDER}/${word}/${name}.png")
      message(FATAL_ERROR "there is gnuplot, but no ${word}/${name}.png:\n${errors}")
    endif()
  endwhile()
endfunction()
# Three layers of four heads; 64 slots, 8 tokens, 32 words a segment; the slots' writer is around the stack.
shows(memformer reader_weights layer-head-slot-value 768 reader_weights_words layer-slot-word-value 6144
      writer_weights_words layer-slot-word-value 2048 writer_kept layer-head-slot-value 256)
shows(recurrent tokens_read layer-head-token-value 96 words_read_words layer-token-word-value 768)
shows(memory tokens_read layer-head-token-value 96)
shows(associative words_read layer-head-token-value 96)
shows(titans-front tokens_read layer-head-token-value 96 tokens_read_words layer-token-word-value 768)
shows(memsizer slot_weights layer-head-slot-value 384)
shows(infini memory_gate layer-head-value 12)
shows(titans memory_share_words layer-word-value 96)
shows(titans-layer titans_step layer-head-value 12)
shows(delta-net delta_share layer-head-value 12)
shows(gated-delta-net delta_kept_words layer-head-word-value 384)
shows(product-keys product_key_use layer-key1-key2-value 1024 product_key_weights layer-head-rank-value 128)
shows(memory-plus product_key_use layer-key1-key2-value 1024)
shows(engram engram_gate_words layer-word-value 32)
# What words read of the past, by its places: 96 of the last words, 35 of the compressive memory's, and 64
# compressed ones.
shows(xl past_weights layer-head-place-value 1152 past_weights_words layer-place-word-value 9216)
shows(lamemo past_weights layer-head-place-value 1152)
shows(compressive past_weights layer-head-place-value 420 compressed_weights layer-head-place-value 768)

# The gate of a SPALM, of all words of the documents, by the program that trains such a model.
set(study "${PROGRAM}")
set(PROGRAM "${LANGUAGE_MODEL}")
set(tiny --data short --level word --width 8 --layers 2 --heads 2 --feed-forward 12 --memory-length 8 --batch 2
         --segment 16 --steps 2 --evaluate-every 0 --schedule constant --memory xl)
run(0 ignored train ${tiny} --out keys)
run(0 ignored build-datastore --model keys --out store)
run(0 ignored train ${tiny} --spalm store --spalm-neighbours 3 --out spalm-model)
list(REMOVE_ITEM tiny --memory xl)
run(0 ignored train ${tiny} --memory infty-power --out infty-power-model)  # of which there are no pictures
run(0 ignored train ${tiny} --memory infty --feed memory-plus --out feed-model)
set(PROGRAM "${study}")
refused("contracts its past by power" --model infty-power-model --out none --no-sorting)
refused("do not show what their long-term memory writes" --model feed-model --out none --no-sorting)
run(0 printed --model spalm-model --out spalm --documents 1 --words 70 --bins 10 --no-sorting)
if(NOT printed MATCHES "SPALM takes [01][.][0-9]+ of what was looked up in the mean over 70 words"
   OR NOT printed MATCHES "spalm attention, [^\n]*: each looks at [123][.][0-9] of 3")
  message(FATAL_ERROR "a SPALM is told as\n${printed}")
endif()
file(STRINGS "${FOLDER}/spalm/spalm_gate_histogram.csv" rows)
list(POP_FRONT rows header)
list(LENGTH rows count)
execute_process(COMMAND awk -F, "NR > 1 { sum += $3 } END { printf \"%.6f\", sum }"
                        "${FOLDER}/spalm/spalm_gate_histogram.csv" OUTPUT_VARIABLE sum)
if(NOT header STREQUAL "from,to,share" OR NOT count EQUAL 10 OR NOT sum STREQUAL "1.000000")
  message(FATAL_ERROR "spalm_gate_histogram.csv is\n${header}\n${rows}")
endif()
foreach(figure spalm_gate_histogram spalm_gate_words)
  if(gnuplot AND NOT EXISTS "${FOLDER}/spalm/${figure}.png")
    message(FATAL_ERROR "there is gnuplot, but no ${figure}.png:\n${errors}")
  endif()
endforeach()

# A model that is there is not given up for other options.
file(SHA256 "${FOLDER}/first/model/checkpoint.safetensors" before)
refused("first/model holds a run with" --data text --out first --steps 4 --no-sorting)
file(SHA256 "${FOLDER}/first/model/checkpoint.safetensors" after)
same("first/model/checkpoint.safetensors" "${before}" "${after}")
run(0 ignored --data text --out first --steps 4 --words 300 --documents 1 --no-sorting --fresh)

refused("again/checkpoint.safetensors: No such file" --model again --no-sorting)
refused("--predict is 300: the text has 300 tokens" --model first/model --out again --words 300
        --predict 300 --no-sorting)
refused("--predict is 0: the long-term memory is empty there, so that it must be 64 at least"
        --model first/model --out again --words 300 --predict 0 --no-sorting)
refused("it must be 64 at least" --model first/model --out again --words 300 --predict 63 --no-sorting)
run(0 ignored --model first/model --out again --words 300 --documents 1 --predict 64 --no-sorting)
# Of a model that is to be trained it is known before.
refused("it must be 64 at least" --data text --out unmade --predict 63)
if(EXISTS "${FOLDER}/unmade")
  message(FATAL_ERROR "what was refused has written")
endif()
# The shortest of which something comes to the sorting models' memory.
run(0 printed --out sorting --no-text --basis 2 --sorting-steps 1 --sorting-length 65)
if(NOT printed MATCHES "\n +2 +[01][.][0-9]+ +[0-9]+[.][0-9]+\n" OR printed MATCHES " 0[.]000\n")
  message(FATAL_ERROR "of 65 symbols it prints\n${printed}")
endif()
refused("none of them comes to the long-term memory" --model first/model --out again --words 40
        --no-sorting)
