# cmake -DPROGRAM=... -DFOLDER=... -P claims.cmake: another process that writes there, and files that are
# damaged, are refused in words, and nothing is lost.
cmake_minimum_required(VERSION 3.21)
include("${CMAKE_CURRENT_LIST_DIR}/../support/claims.cmake")
set(options --tasks copy --memories xl --symbols 3 --items 2 --copy-gap 5 --width 8 --layers 1 --feed-forward 8 --parameters 0
            --segment 4 --bytes 384 --widths .2 --samples 8 --batch 3 --steps 3 --warmup 1 --rates 1e-3,1e-2
            --seeds 4,5 --evaluation-sequences 7 --curve-tasks none --out a)
run(0 whole ${options})
held(a/.lock a ${options})

set(name a/runs/copy-5-xl-384-0.001-4.json)
cut(${name})
damaged(${name} "${name} is 'array': an object is needed" "[]")
field(${name} "seed\": 4" "seed\": 5" " is the run 'copy-5-xl-384-0.001-5'")
field(${name} "seed\": 4" "seed\": \"4\"" ": run: seed is '\"4\"': an integer from")
field(${name} "seed\": 4" "seed\": -4" ": run: seed is '-4': an integer from")
field(${name} "seed\": 4" "seed\": 1e300" ": run: seed is '1e+300': an integer from")
field(${name} "memory\": \"xl\"" "memory\": 7" ": run: memory is '7': a string is needed")
field(${name} "loss" "less" " has no loss")
field(${name} "seconds\": " "seconds\": 1e999, \"more\": " " is damaged")
field(${name} "run" "more\": 1, \"run" " has 10 fields: 9 are known")
field(${name} "distances\": []" "distances\": [4]" ": distances[0] is '4': an object is needed")
damaged(a/settings.json "a/settings.json is damaged" "{")
damaged(a/settings.json "a/settings.json: there are no settings" "[]")
field(a/settings.json "batch\": 3" "batch\": 1e300" ": --batch is '1e+300': an integer from")
field(a/settings.json "batch\": 3" "botch\": 3" " lacks the setting --batch: it was written by another")
field(a/settings.json "xl\"" "foo\"" ": --memories is 'foo', which is none of its choices")
run(0 again ${options})
same("the table" "${whole}" "${again}")
