# cmake -DPROGRAM=... -DFOLDER=... -P claims.cmake: another process that writes there, and checkpoints that
# claim what is not so, are refused in words, and nothing is lost.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/claims.cmake")
set(tiny --symbols 4 --length 40 --segment 8 --short-term 8 --width 8 --heads 2 --feed-forward 12
         --basis 8 --widths .1,.2 --samples 12 --batch 4 --steps 9 --warmup 4
         --evaluation-sequences 10 --bins 16 --models infty,none)
run(0 ignored ${tiny} --out out --save a --stop-at 7)
run(0 ignored --resume a --save b --out out)

unchanged("--save a is there already: --resume a goes on from it; remove it to begin anew" ${tiny} --out out --save a)
unchanged("--save b is there already" --resume a --out out --save b)
file(WRITE "${FOLDER}/other/results.json" "{\"settings\": {}}\n")
unchanged("other/results.json is no file of this program: give another --out" ${tiny} --out other)
held(out/.lock out --resume a --out out)
held(a.lock a --resume a --out out)
held(a.lock a ${tiny} --out out --save a)

# The first in training, then both done. The header has the settings as a string in a string.
function(claim from old new text)
  edited(${from} c "${old}" "${new}")
  unchanged("${text}" --resume c --out out)
endfunction()
claim(a "\\\"layers\\\":2" "\\\"layers\\\":1000000000" "--layers is 1000000000: with it these settings need about")
claim(a "\\\"layers\\\":2" "\\\"layers\\\":1000" "c: its settings say --layers 1000, and its tensors")
claim(a "\\\"feed-forward\\\":12" "\\\"feed-forward\\\":1000000" "is [12, 8], [1000000, 8] is needed")
claim(a "\\\"symbols\\\":4" "\\\"symbols\\\":1000000000000" "--symbols is 1000000000000: with it these settings need")
claim(a "\\\"basis\\\":8" "\\\"basis\\\":1000" "is [2, 8], [2, 1000] is needed")
claim(a "\\\"steps\\\":9" "\\\"steps\\\":1e300" "--steps is '1e+300': an integer from")
claim(a "\\\"sigma0\\\"" "\\\"sigma9\\\"" "c lacks the setting --sigma0: it was written by another version")
claim(a "\\\"density\\\":\\\"gaussian\\\"" "\\\"density\\\":\\\"foo\\\"" "--density is 'foo', which is none")
claim(a "{\\\"accuracy\\\":[" "{\\\"accuracy\\\":[0.5," "history.infty has 7 losses and 8 accuracies of 7 steps")
claim(a "\\\"loss\\\":[" "\\\"loss\\\":[\\\"x\\\"," "history.infty: loss[0] is '\"x\"': a number is needed")
claim(a "\"infty.checkpoint\":\"2\"" "\"infty.checkpoint\":\"3\"" "c is a checkpoint of version '3', version '1' or")
claim(a "\"infty.checkpoint\":\"2\"," "" "c is a checkpoint of no version, version '1' or '2'")
claim(a "\"current\":\"infty\"" "\"current\":\"foo\"" "its settings say --layers 2, and its tensors")
claim(b "\\\"memory_writes\\\":" "\\\"memory_writes\\\":1e300,\\\"x\\\":" "memory_writes is '1e+300': an integer from")
claim(b "\\\"name\\\":\\\"infty\\\"" "\\\"name\\\":\\\"foo\\\"" "results of the model 'foo', which its settings do not")
claim(b "\\\"loss\\\":[" "\\\"loss\\\":[1.0," "the history of infty has 10 losses and 9 accuracies of 9 steps")
claim(b "\\\"attention\\\":[[" "\\\"attention\\\":[[],[" "the attention of infty has 0 bins, its settings say 16")
claim(b "\"results\":\"[" "\"results\":\"{" "c: results is damaged")

# Version 1 had no choice of functions, and is gone on with; another that says nothing of them is not.
edited(a c "\\\"functions\\\":\\\"gaussian\\\"," "")
unchanged("c lacks the setting --functions" --resume c --out out)
edited(c d "\"infty.checkpoint\":\"2\"" "\"infty.checkpoint\":\"1\"")
run(0 ignored --resume d --out out)

# A comparison's folder.
set(options --lengths 12 --symbols 3 --segment 4 --short-term 4 --basis 4 --widths .2 --samples 6 --width 8
            --layers 1 --heads 2 --feed-forward 8 --batch 3 --steps 3 --warmup 1 --evaluation-sequences 7
            --seeds 4 --models xl,compressive --out lengths)
run(0 whole ${options})
held(lengths/.lock lengths ${options})
set(name lengths/runs/12-xl-0-0.0-4.json)
cut(${name})
field(${name} "accuracy\": " "accuracy\": null, \"more\": " ": accuracy is 'null': a number is needed")
field(${name} "length\": 12" "length\": 1e300" ": length is '1e+300': an integer from")
field(${name} "length\": 12" "length\": 20" " is the run '20-xl-0-0.0-4'")
field(${name} "weight" "height" " has no weight")
damaged(lengths/settings.json "lengths/settings.json is damaged" "{")
field(lengths/settings.json "batch\": 3" "botch\": 3" " lacks the setting --batch")
run(0 again ${options})
same("the table of lengths" "${whole}" "${again}")

# Models of comparisons are none of a checkpoint's.
edited(a c "[\\\"infty\\\",\\\"none\\\"]" "[\\\"infty\\\",\\\"xl\\\"]")
unchanged("--models names xl, which is compared with others at several --lengths" --resume c --out out)
