# For the scripts of this folder: a text, and a vocabulary of GPT-2's form for it, in FOLDER; and the options
# of the smallest runs.
set(text "")
foreach(i RANGE 1 60)
  string(APPEND text " The café of number ${i} , it 's said , opens at ${i} .\n")
endforeach()
file(WRITE "${FOLDER}/text" "${text}")
set(last " The café , it 's said .\n The house of number 7 opens at 9 .\n The café opens at 2 .\n")
file(WRITE "${FOLDER}/last" "${last}")
file(MAKE_DIRECTORY "${FOLDER}/bpe")
set(tokens "")
set(id 0)
foreach(symbol IN ITEMS T h e Ġ c a f Ã © o n u m b r , i t ' s d p . Ċ = 0 1 2 3 4 5 6 7 8 9 Ġt he Th The)
  string(APPEND tokens "\"${symbol}\": ${id}, ")
  math(EXPR id "${id} + 1")
endforeach()
file(WRITE "${FOLDER}/bpe/vocab.json" "{${tokens}\"<|endoftext|>\": ${id}}")
file(WRITE "${FOLDER}/bpe/merges.txt" "#version: 0.2\nĠ t\nh e\nT h\nTh e\n")
set(small --encoding bpe --data text --valid last --test last --width 8 --layers 2 --heads 2 --places 16
          --batch 2 --warmup 1 --evaluation-batch 2)
set(tuned --data text --valid last --test last --segment 12 --basis 8 --widths .1,.3 --samples 8
          --sticky-bins 8 --compressed-length 8)
set(rows --batch 2 --evaluation-batch 2)
