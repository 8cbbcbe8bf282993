# Says which links of the site lead to no file or no anchor of it: run in its folder over all pages.

BEGIN {
  while ((getline line < files) > 0) there[line] = 1
}

FNR == 1 {
  page = FILENAME
  sub(/^\.\//, "", page)
}

{
  line = $0
  while (match(line, /(id|name|href|src|data)="[^"]*"/)) {
    item = substr(line, RSTART, RLENGTH - 1)
    line = substr(line, RSTART + RLENGTH)
    at = index(item, "=\"")
    what = substr(item, 1, at - 1)
    value = substr(item, at + 2)
    if (what == "id" || what == "name") anchor[page "#" value] = 1
    else if (value !~ /^[a-z]+:/ && value != "" && value != "#") link[page " " value] = page
  }
}

END {
  for (both in link) {
    page = link[both]
    to = substr(both, length(page) + 2)
    file = to
    sub(/[#?].*/, "", file)
    if (file == "") file = page
    hash = index(to, "#") ? substr(to, index(to, "#") + 1) : ""
    # Doxygen's own tables name some members that it has no text for, such as `~Tensor`.
    if (hash == "nested-classes" || hash ~ /^a[0-9a-f]+$/) hash = ""
    if (!(file in there)) {
      print "docs: " page " links to " to ", and there is no such file"
      bad = 1
    } else if (hash != "" && file ~ /\.html$/ && !(file "#" hash in anchor)) {
      print "docs: " page " links to " to ", and there is no such anchor"
      bad = 1
    }
  }
  exit bad
}
