# What Doxygen reads instead of a page: headings have the names that GitHub gives them, behind that of
# the page, and links lead to pages of the site, to the examples in it, or to copies of files.

# The name of a page in the site.
function page_of(path,    name) {
  if (path == "README.md") return "index"
  name = path
  sub(/^.*\//, "", name)
  sub(/\.md$/, "", name)
  return tolower(name)
}

# What GitHub makes of a heading, without letters that are not ASCII.
function slug(text) {
  text = tolower(text)
  gsub(/[^a-z0-9_ -]/, "", text)
  gsub(/ /, "-", text)
  return text
}

# What a path in the repository is called in a link of the site; empty if there is nothing.
function place(path,    program) {
  if (path ~ /\.md$/) return path ~ /^(docs\/[^\/]*|[^\/]*)$/ ? page_of(path) ".html" : "files/" path ".txt"
  if (path ~ /^examples\//) {
    program = path
    sub(/^examples\//, "", program)
    if (program in example) return example[program]
    if (program "/main.cpp" in example) return example[program "/main.cpp"]
  }
  if (path !~ /\/[^\/]*\.[a-z]+$/) return ""  # a folder
  return "files/" path (path ~ /\.html$/ ? "" : ".txt")
}

# Where a link leads.
function resolved(target,    anchor, path) {
  anchor = ""
  if (match(target, /#/)) {
    anchor = slug(substr(target, RSTART + 1))
    target = substr(target, 1, RSTART - 1)
  }
  path = target == "" ? self : folder target
  while (sub(/[^\/]+\/\.\.\//, "", path)) continue
  if (anchor != "") anchor = "#" page_of(path) "-" anchor
  path = place(path)
  return path == "" ? "" : path anchor
}

# A piece of a line outside of code, with its links; `done` is what stands in front of it.
function linked(text,    out, target, to, at, depth) {
  out = done
  while (match(text, /\]\([^) ]*\)/)) {
    target = substr(text, RSTART + 2, RLENGTH - 3)
    out = out substr(text, 1, RSTART - 1)
    text = substr(text, RSTART + RLENGTH)
    depth = 1
    for (at = length(out); at > 0; --at) {
      if (substr(out, at, 1) == "]") ++depth
      if (substr(out, at, 1) == "[" && --depth == 0) break
    }
    if (target ~ /^[a-z]+:/ || (at > 1 && substr(out, at - 1, 1) == "!")) {
      out = out "](" target ")"
    } else if ((to = resolved(target)) != "") {
      out = out "](" to ")"
    } else {
      out = substr(out, 1, at - 1) substr(out, at + 1)  # the words alone
    }
  }
  return out text
}

function words(line,    pieces, n, i) {
  n = split(line, pieces, "`")
  done = ""
  for (i = 1; i <= n; ++i) {
    done = i % 2 || i == n ? linked(pieces[i]) : done pieces[i]
    if (i < n) done = done "`"
  }
  return done
}

BEGIN {
  self = ARGV[1]
  sub(/^.*\/docs\//, "docs/", self)
  if (self !~ /^docs\//) sub(/^.*\//, "", self)
  folder = self ~ /^docs\// ? "docs/" : ""
  title = page_of(self)
  # The names of the pages that Doxygen makes of the examples.
  while ((getline line < "docs/site/examples.dox") > 0)
    if (match(line, /\\example [^ ]+/)) {
      line = substr(line, RSTART + 9, RLENGTH - 9)
      name = line
      gsub(/\//, "_2", name)
      gsub(/\./, "_8", name)
      example[line] = name "-example.html"
    }
}

/^```/ {
  code = !code
  sub(/^```cpp/, "```{.cpp}")
  sub(/^```(console|text)/, "```{.unparsed}")
  sub(/^```python/, "```{.py}")
  if ($0 == "```" && code) $0 = "```{.unparsed}"
  print
  next
}
code { print; next }
/^<!-- .* -->$/ { next }
/^#+ / {
  heading = $0
  sub(/^#+ /, "", heading)
  gsub(/`/, "")  # Doxygen would print the tags of code in a heading
  name = slug(heading)
  if (count[name]++) name = name "-" (count[name] - 1)
  if ($0 ~ /^# /) print words($0) (title == "index" ? "" : " {#" title "}")
  else print words($0) " {#" title "-" name "}"
  next
}
{ print words($0) }
