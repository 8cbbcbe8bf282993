# Says which links of pages in Markdown lead to no file or no heading: run over all of them at the top
# of the tree. `there` names a file with all files and folders of the tree, "./" in front.

function slug(text) {  # what GitHub makes of a heading
  text = tolower(text)
  gsub(/[^a-z0-9_ \200-\377-]/, "", text)
  gsub(/ /, "-", text)
  return text
}

function check(target,    path, anchor, from) {
  if (target ~ /^[a-z]+:/) return
  anchor = index(target, "#") ? substr(target, index(target, "#") + 1) : ""
  sub(/#.*/, "", target)
  from = FILENAME
  if (!sub(/[^\/]*$/, "", from)) from = ""
  path = target == "" ? FILENAME : from target
  while (sub(/[^\/]+\/\.\.\//, "", path)) continue
  sub(/\/$/, "", path)
  ++links
  link[links] = FILENAME ":" FNR
  to[links] = path
  at[links] = anchor
}

BEGIN {
  while ((getline line < there) > 0) exists[substr(line, 3)] = 1
}

FNR == 1 { code = 0 }
/^```/ { code = !code }
code { next }

/^#+ / {
  heading = $0
  sub(/^#+ /, "", heading)
  heading = slug(heading)
  name = FILENAME "#" heading
  if (name in heads) name = name "-" count[name]
  ++count[FILENAME "#" heading]
  heads[name] = 1
}

{
  n = split($0, pieces, "`")  # between backticks stands code, in which [](...) is none
  for (i = 1; i <= n; i += 2) {
    text = pieces[i]
    while (match(text, /\]\([^) ]*\)/)) {
      check(substr(text, RSTART + 2, RLENGTH - 3))
      text = substr(text, RSTART + RLENGTH)
    }
  }
}

END {
  for (i = 1; i <= links; ++i) {
    if (!(to[i] in exists)) {
      print link[i] ": there is no " to[i]
      bad = 1
    } else if (at[i] != "" && to[i] ~ /\.md$/ && !(to[i] "#" at[i] in heads)) {
      print link[i] ": there is no heading #" at[i] " in " to[i]
      bad = 1
    }
  }
  if (links < 50) {
    print "only " links + 0 " links were found: the test looks at the wrong files"
    bad = 1
  }
  exit bad
}
