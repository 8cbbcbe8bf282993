# What Doxygen reads instead of a header: the same lines, with the words that the same member has in
# every class, and with a comment on each of several members that a line declares.

BEGIN {
  of["Scalar"] = "Type of the elements, `float` or `double`."
  of["BackendType"] = "Whose memory tensors lie in, and who computes."
  of["V"] = "What goes through a layer: a tensor, and its gradient where one is recorded."
  of["TensorType"] = "Of what a variable holds."
  of["State"] = "What is remembered of every row: a value that the caller owns."
  of["Norm"] = "The norm in front of a mixer, which a block hands to it."
  of["Config"] = "The constants that one is made of."
  of["MemoryConfig"] = "The constants of the memory in every layer."
  of["MixerType"] = "What is in every layer beside the feed-forward network."
  of["PassType"] = "One call of a model: what layers are told, and what they report."
  of["Tokens"] = "Numbers of tokens, [B, L]."
  of["Kernel"] = "Names the kernel that a backend may bring in this one's place."
  visit = "Names all parts, each by `see(name, part)`: a layer's parameters and smaller layers, a " \
          "state's members. From this come counting, training, copying, saving and loading."
}

# The members of `line`, "TYPE a = 0, *b;  ///< words", each with the words; empty if it is one.
function apart(line,    at, words, pieces, n, i, first, type, out, value) {
  at = index(line, ";")
  words = substr(line, at + 1)
  if (words !~ /^ *\/\/\/</) return ""
  sub(/^ *\/\/\/< */, "", words)
  n = split(substr(line, 1, at - 1), pieces, ", ")
  first = n + 1
  while (first > 2 && pieces[first - 1] ~ /^\*?[a-z_][a-z_0-9]*( = [a-zA-Z_0-9.]+)?$/) --first
  if (first > n) return ""
  type = pieces[1]
  for (i = 2; i < first - 1; ++i) type = type ", " pieces[i]
  if (first > 2) type = type ", " pieces[first - 1]
  value = ""
  if (match(type, / = [a-zA-Z_0-9.]+$/)) {
    value = substr(type, RSTART)
    type = substr(type, 1, RSTART - 1)
  }
  match(type, /\*?[a-z_][a-z_0-9]*$/)
  out = substr(type, RSTART) value
  type = substr(type, 1, RSTART - 1)
  out = type out "; /**< " words " */"
  for (i = first; i <= n; ++i) out = out type pieces[i] "; /**< " words " */"
  return out
}

# A comment on the file, without which Doxygen has no page of it.
FNR == 1 {
  path = ARGV[1]
  sub(/^.*(include|cuda)\/infty\//, "infty/", path)
  print "/** @file " path " @brief To be included as <code>\\<" path "\\></code>. */ " $0
  before = $0
  next
}

{
  documented = before ~ /^ *\/\/\// || $0 ~ /\/\/\/</
  name = ""
  if (!documented && $0 ~ /^ *using typename .*::[A-Za-z]+;/) {
    name = $0
    sub(/;.*/, "", name)
    sub(/.*::/, "", name)
  } else if (!documented && $1 == "using" && $3 == "=") {
    name = $2
  }
  line = $0
  if (name in of) line = "/** " of[name] " */ " $0
  if (before ~ /^ *template <class Visitor>$/ && before2 !~ /^ *\/\/\// && $0 ~ /void visit\(/)
    line = "/** " visit " */ " $0
  if ($0 ~ /^  [A-Za-z].*[a-z_0-9], .*;  *\/\/\/< / && (several = apart($0)) != "") line = several
  print line
  before2 = before
  before = $0
}
