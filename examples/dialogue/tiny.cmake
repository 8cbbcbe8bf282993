# For the scripts of this folder: made-up conversations in FOLDER/published, as CMU-DoG's are, and an
# encoding of plain letters in FOLDER/base, with which weights are fresh.
function(made_up)
  foreach(n RANGE 0 1)
    file(
      WRITE "${FOLDER}/published/WikiData/film${n}.json"
      "{\"0\": {\"movieName\": \"Film ${n}\", \"year\": \"200${n}\", \"director\": \"Ann Lee\", \"genre\": \"Drama\",
        \"cast\": [\"Bo as Cy\", \"Di as Ed\"], \"rating\": [\"good: 8\"], \"critical_response\": [\"It is fine.\"],
        \"introduction\": \"Film ${n} is a film\\nof a house.\"}, \"1\": \"Cy finds the house.\", \"2\": \"Ed leaves.\",
        \"3\": \"All end well.\", \"wikiDocumentIdx\": ${n}}")
  endforeach()
  set(of_train 6)
  set(of_valid 2)
  set(of_test 3)
  foreach(split train valid test)
    foreach(n RANGE 1 ${of_${split}})
      math(EXPR document "${n} % 2")
      set(history "")
      foreach(turn RANGE 1 5)
        math(EXPR user "${turn} % 2 + 1")
        string(APPEND history "{\"docIdx\": 0, \"text\": \"the house ${turn} of ${n}\", \"uid\": \"user${user}\"}, ")
      endforeach()
      file(
        WRITE "${FOLDER}/published/Conversations/${split}/${n}.json"
        "{\"history\": [${history}{\"docIdx\": 1, \"text\": \" is\\tfine \", \"uid\": \"user2\"},
          {\"docIdx\": 1, \"text\": \"\", \"uid\": \"user1\"}], \"wikiDocumentIdx\": ${document}}")
    endforeach()
  endforeach()
  set(vocabulary "\"\\u0120\": 0, \"th\": 1, \"the\": 2")
  set(number 3)
  string(REGEX MATCHALL "." letters "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:!?'")
  foreach(letter IN LISTS letters)
    string(APPEND vocabulary ", \"${letter}\": ${number}")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE "${FOLDER}/base/vocab.json" "{${vocabulary}}\n")
  file(WRITE "${FOLDER}/base/merges.txt" "#version: 0.2\nt h\nth e\n")
endfunction()

# A model that is trained in a second, and what all commands share.
set(sizes --places 24 --width 8 --layers 2 --heads 2 --segment 16 --document-tokens 10 --basis 4 --widths .1,.2
          --samples 8 --sticky-bins 16 --compressed-length 4 --compression-rate 3 --rate 1e-3 --longest 5)
set(tiny ${sizes} --data text --base base)
