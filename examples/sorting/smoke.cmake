# cmake -DPROGRAM=... -DFOLDER=... -P smoke.cmake: the program, small. All models train, are
# evaluated and reported; a run that was interrupted twice, with another number of threads, gives
# what an uninterrupted one gives, byte for byte; what cannot be is refused.
include("${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake")
set(tiny --symbols 4 --length 40 --segment 8 --short-term 8 --width 8 --heads 2 --feed-forward 12
         --basis 8 --widths .1,.2 --samples 12 --batch 4 --steps 24 --warmup 4
         --evaluation-sequences 10 --bins 16 --dropout .1)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

# results.json without what differs from run to run
function(read_results folder out)
  file(READ "${FOLDER}/${folder}/results.json" json)
  string(REGEX REPLACE "\"[a-z_]*(seconds|bytes)\": [^\n]*" "" json "${json}")
  set(${out} "${json}" PARENT_SCOPE)
endfunction()

set(models infty,sticky,none)
run(0 whole ${tiny} --models ${models} --out whole --threads 1)
run(0 ignored ${tiny} --models ${models} --out parts --threads 2 --save state --stop-at 7)
run(0 ignored --resume state --out parts --threads 1 --stop-at 23)
run(0 parts --resume state --out parts --threads 2)
run(0 again --resume state --out again)
foreach(folder parts again)
  same("the table" "${whole}" "${${folder}}")
  foreach(file curves.csv attention.csv figure.gp)
    file(READ "${FOLDER}/whole/${file}" a)
    file(READ "${FOLDER}/${folder}/${file}" b)
    same(${file} "${a}" "${b}")
  endforeach()
  read_results(whole a)
  read_results(${folder} b)
  same(results.json "${a}" "${b}")
endforeach()
find_program(gnuplot gnuplot)
if(gnuplot AND NOT EXISTS "${FOLDER}/whole/figure.png")
  message(FATAL_ERROR "there is gnuplot, but no figure")
endif()

run(0 ignored ${tiny} --models infty --density parabola --parameters moments --sticky quantiles
    --schedule linear --pre-norm false --clip 0 --out other)

foreach(functions fourier power rectangular)
  run(0 ignored ${tiny} --models sticky --functions ${functions} --out other)
endforeach()
refused("--functions fourier is in this program for --density gaussian" --functions fourier
        --density parabola)
refused("--parameters moments is for functions with centres: --functions is power" --functions power
        --parameters moments)
refused("--functions power is in this program for --backend eigen" --functions power --backend cuda)
refused("--products bfloat16 goes with --backend eigen" --products bfloat16 --backend cuda)

# Other contractions: a word is the option, and what is written by blocks goes on where it was.
set(contracted infty-power,infty-uniform,infty-mixed,infty-learned)
run(0 words ${tiny} --block 4 --models ${contracted} --out contracted --threads 1)
run(0 ignored ${tiny} --block 4 --models ${contracted} --out contracted-parts --save contracted-state --stop-at 7)
run(0 parts --resume contracted-state --out contracted-parts)
same("the table" "${words}" "${parts}")
foreach(name power uniform mixed learned)
  run(0 option ${tiny} --block 4 --models infty --contraction ${name} --out contracted-${name})
  string(REGEX MATCH "infty-${name} +([^\n]*)" row "${words}")
  set(of_word "${CMAKE_MATCH_1}")
  string(REGEX MATCH "infty +([^\n]*)" row "${option}")
  same("the row of --contraction ${name}" "${of_word}" "${CMAKE_MATCH_1}")
  file(STRINGS "${FOLDER}/contracted-${name}/figure.gp" borders REGEX "past contractions|set arrow")
  same("borders of --contraction ${name}, which leaves none at powers of tau" "${borders}" "")
endforeach()
file(STRINGS "${FOLDER}/whole/figure.gp" borders REGEX "past contractions|set arrow")
if(NOT borders MATCHES "set arrow.*borders of past contractions")
  message(FATAL_ERROR "the figure has these borders:\n${borders}")
endif()
run(0 ignored ${tiny} --block 4 --models sticky --contraction mixed --powers 0,1 --out contracted-sticky)
refused("--contraction uniform is in this program for --backend eigen, --density gaussian" --models infty-uniform
        --density parabola)

refused("foo not in {infty,sticky,infty-power,infty-uniform,infty-mixed,infty-learned,xl,compressive,none}" --models foo)
refused("--heads is 3: it must divide --width = 64, or --head-dim must be given" --heads 3)
refused("--steps is 9: it must be above --warmup = 20" --steps 9 --warmup 20)
refused("--resume excludes --steps" --resume state --steps 3)
refused("whole/curves.csv" ${tiny} --out whole/curves.csv)
refused("missing/state" ${tiny} --out other --save missing/state)
file(WRITE "${FOLDER}/foreign" "{}")
refused("foreign" --resume foreign)
refused("[train_step] step 1: [Layers] layer 0: " --rate 1e30 ${tiny} --models none --out other)

# A comparison at several lengths: every model has its row, and all but `none` as many vectors.
set(compared --lengths 12,20,40 --symbols 6 --segment 4 --short-term 4 --basis 4 --widths .2 --samples 6
             --sticky-bins 4 --width 8 --layers 1 --heads 2 --feed-forward 8 --batch 3 --steps 3 --warmup 1
             --evaluation-sequences 7 --seeds 4,5 --compression-rates 2,6)
run(0 table ${compared} --out lengths --jobs 1)
foreach(row "infty [|] 8" "sticky [|] 8" "xl [|] 8" "compressive [|] 8" "none [|] 4")
  if(NOT table MATCHES "\n[|] ${row} [|] [0-9]+[^|]* [|] [0-9.]+ ± [0-9.]+ ")
    message(FATAL_ERROR "the table has no row ${row}:\n${table}")
  endif()
endforeach()
# Rates are tried until one makes room for the length, 4 + 4 + 4 times the rate, each with both weights.
string(REGEX MATCHALL "\n[|] (12|20|40) [|] (2|6) [|] [01]\\.0 [|]" tried "${table}")
list(LENGTH tried count)
if(NOT count EQUAL 10 OR table MATCHES "\n[|] 12 [|] 6 [|]")
  message(FATAL_ERROR "not tried as the paper has it:\n${table}")
endif()
string(REGEX MATCHALL "[|] no verdict: 2 seeds [|]" verdicts "${table}")
list(LENGTH verdicts count)
if(NOT count EQUAL 21) # seven pairs at three lengths
  message(FATAL_ERROR "${count} comparisons, not 21:\n${table}")
endif()
file(STRINGS "${FOLDER}/lengths/runs.csv" lines)
list(LENGTH lines count)
if(NOT count EQUAL 38) # a header; 4 models, 3 lengths, 2 seeds; 10 tried of one seed, 3 of the other
  message(FATAL_ERROR "runs.csv has ${count} lines")
endif()
file(STRINGS "${FOLDER}/lengths/lengths.csv" numbers)
list(LENGTH numbers count)
if(NOT count EQUAL 25) # a header; 5 models and 3 floors, 3 lengths
  message(FATAL_ERROR "lengths.csv has ${count} lines")
endif()
if(gnuplot AND NOT EXISTS "${FOLDER}/lengths/lengths.png")
  message(FATAL_ERROR "there is gnuplot, but no figure of the lengths")
endif()

string(REPLACE "--lengths;12,20,40" "--lengths;12;--block;2" short "${compared}")
run(0 contracted ${short} --out lengths-contracted --models infty,infty-power,infty-uniform,infty-learned,none)
foreach(row infty infty-power infty-uniform infty-learned)
  if(NOT contracted MATCHES "\n[|] ${row} [|] 8 [|] [0-9]+[^|]* [|] [0-9.]+ ")
    message(FATAL_ERROR "the table has no row ${row}:\n${contracted}")
  endif()
endforeach()

# Runs that are there are not done again: what is left of them goes on to the same table.
file(GLOB runs "${FOLDER}/lengths/runs/*")
list(LENGTH runs count)
if(NOT count EQUAL 37)
  message(FATAL_ERROR "there are ${count} runs:\n${runs}")
endif()
list(SUBLIST runs 0 20 some)
file(COPY ${some} DESTINATION "${FOLDER}/lengths-parts/runs")
run(0 parts ${compared} --out lengths-parts --jobs 2)
same("the table of lengths" "${table}" "${parts}")
if(NOT errors MATCHES "37 runs")
  message(FATAL_ERROR "not 37 runs:\n${errors}")
endif()
foreach(run IN LISTS some)
  get_filename_component(name "${run}" NAME)
  file(READ "${run}" one)
  file(READ "${FOLDER}/lengths-parts/runs/${name}" other)
  same("the run ${name}, which was done," "${one}" "${other}")
endforeach()

# A run that fails is named, and takes no other with it; before it is done there is no verdict.
string(REPLACE "--lengths;12,20,40" "--lengths;12" failing "${compared}")
file(WRITE "${FOLDER}/failed/runs/12-none-0-0.0-4.safetensors" "damaged")
run(1 failed ${failing} --models xl,none --out failed)
if(NOT errors MATCHES "the run 12-none-0-0.0-4: " OR NOT errors MATCHES "runs that failed: 1; the same command"
   OR NOT failed MATCHES "Runs are missing" OR NOT failed MATCHES "\n[|] xl [|] 8 [|] [0-9]+ [|] [0-9.]+ ± ")
  message(FATAL_ERROR "of a damaged checkpoint:\n${failed}${errors}")
endif()
file(REMOVE "${FOLDER}/failed/runs/12-none-0-0.0-4.safetensors")
run(0 ignored ${failing} --models xl,none --out failed)
string(REPLACE "--lengths;12,20,40" "--lengths;40,12" fewer "${compared}")
string(REPLACE "--seeds;4,5" "--seeds;5" fewer "${fewer}")
run(0 fewer ${fewer} --out lengths --models none)
if(fewer MATCHES "±" OR NOT fewer MATCHES "\n[|] none [|] 4 [|][^|]*[|] [0-9.]+ [|] [0-9.]+ [|]\n$")
  message(FATAL_ERROR "one run of one model is printed as\n${fewer}")
endif()
# The last segment has vectors to compress, or the weight would make no difference.
string(REPLACE "--symbols;6" "--symbols;5" fewer "${compared}")
refused("--compression-rates has 6, tried at length 20: it must be at most --symbols = 5" ${fewer})
run(0 ignored ${fewer} --auxiliary-weights 0 --models compressive --out other-lengths)
refused("lengths holds a comparison with --clip 1.0, not 2.0" ${compared} --clip 2 --out lengths)

# Other backends: their numbers are Eigen's but for rounding, and they read each other's checkpoints.
# One that is not there is refused, and the message says what to do.
file(READ "${FOLDER}/whole/results.json" results)
foreach(text "\"backend\": \"eigen\"" "\"device\": \"CPU\"")
  string(FIND "${results}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "results.json does not say ${text}")
  endif()
endforeach()
refused("--device requires --backend cuda" --device 1)
refused("tpu not in {eigen,thrust,cuda}" --backend tpu)
if(THRUST)
  run(0 ignored ${tiny} --models infty --out thrust --save thrust-state --stop-at 7 --backend eigen)
  run(0 printed --resume thrust-state --out thrust --backend thrust --threads 2)
  if(NOT printed MATCHES "backend thrust")
    message(FATAL_ERROR "the table does not name its backend:\n${printed}")
  endif()
else()
  refused("--backend thrust is not in this program" --backend thrust)
endif()
if(CUDA)
  execute_process(
    COMMAND "${PROGRAM}" ${tiny} --models infty --out cuda --backend cuda
    WORKING_DIRECTORY "${FOLDER}"
    RESULT_VARIABLE status
    OUTPUT_VARIABLE printed
    ERROR_VARIABLE errors)
  if(NOT status EQUAL 0 AND NOT errors MATCHES "--backend cuda needs a GPU, and .*; --backend eigen")
    message(FATAL_ERROR "--backend cuda: status ${status}\n${printed}${errors}")
  endif()
else()
  refused("--backend cuda is not in this program" --backend cuda)
endif()
