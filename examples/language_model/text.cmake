# For the scripts of this folder: a text in FOLDER, which stays in ${text}.
set(text "")
foreach(i RANGE 1 150)
  string(APPEND text " The house of number ${i} , it 's said , opens at ${i} .\n")
endforeach()
file(WRITE "${FOLDER}/text" "${text}")
