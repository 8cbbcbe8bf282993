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

refused("foo not in {infty,sticky,none}" --models foo)
refused("--heads is 3: it must divide --width = 64, or --head-dim must be given" --heads 3)
refused("--steps is 9: it must be above --warmup = 20" --steps 9 --warmup 20)
refused("--resume excludes --steps" --resume state --steps 3)
refused("whole/curves.csv" ${tiny} --out whole/curves.csv)
refused("missing/state" ${tiny} --out other --save missing/state)
file(WRITE "${FOLDER}/foreign" "{}")
refused("foreign" --resume foreign)
refused("[train_step] step 1: [Layers] layer 0: " --rate 1e30 ${tiny} --models none --out other)

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
