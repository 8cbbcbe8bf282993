#!/bin/sh
# run.sh PROGRAM TABLE FOLDER: tries what a table says of a command line. A row is
#
#     ARGUMENTS => STATUS TEXT
#
# The program is run with these arguments, quoted as in a shell, in FOLDER, where at first there is
# no more than a file `text`; it must end with the status and print the text, on either output. Where it ends with 1, nothing in
# the folder may have changed. Empty rows and rows behind # say nothing.
set -u
program=$1
table=$2
folder=$3
rm -rf "$folder"
mkdir -p "$folder/work"
cd "$folder/work" || exit 1
seq 1 99 | sed 's/.*/The café of number & opens at & ./' >text
printed=$folder/printed
rows=0
wrong=0

contents() {
  find . -type d -print -o -type f -exec cksum {} +
}

before=$(contents)
while IFS= read -r row; do
  case $row in '' | '#'*) continue ;; esac
  case $row in *' => '*) ;; *) echo "no row: $row" && exit 1 ;; esac
  arguments=${row%% => *}
  rest=${row#* => }
  wanted=${rest%% *}
  text=${rest#"$wanted"}
  text=${text# }
  eval "set -- $arguments"
  timeout 120 "$program" "$@" >"$printed" 2>&1 </dev/null
  status=$?
  rows=$((rows + 1))
  fault=
  [ "$status" = "$wanted" ] || fault="status $status, not $wanted"
  [ -z "$text" ] || grep -qF -e "$text" "$printed" || fault="$fault; it does not say: $text"
  after=$(contents)
  [ "$status" != 1 ] || [ "$after" = "$before" ] || fault="$fault; it has changed the folder"
  before=$after
  if [ -n "$fault" ]; then
    wrong=$((wrong + 1))
    printf '%s\n  %s\n' "$arguments" "$fault"
    sed 's/^/  | /' "$printed" | head -n 20
  fi
done <"$table"
echo "$rows rows, $wrong wrong"
[ "$rows" -gt 0 ] && [ "$wrong" = 0 ]
