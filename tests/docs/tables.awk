# Holds the table below a heading of a page to the runs that it was made of: each cell of a memory and a task that the
# file of runs has must be the mean and the standard deviation over the seeds, at the rate that the first seed chose, and
# that rate where it stands in brackets. Run over the page; `heading` is the line, `runs` names the file.

function trimmed(text) {
  gsub(/^ +| +$/, "", text)
  return text
}

# The rate whose first seed has the best validation.
function chosen(what,    i, rate, best) {
  best = ""
  for (i = 1; i <= rates[what]; ++i) {
    rate = rate_of[what, i]
    if ((what, rate, 1) in validation && (best == "" || validation[what, rate, 1] > validation[what, best, 1]))
      best = rate
  }
  return best
}

# A number as the table has it is `value` to its last digit.
function is(text, value,    digits) {
  digits = length(text) - index(text, ".")
  return (text - value) ^ 2 <= (.5001 * 10 ^ -digits) ^ 2
}

function check(cell, what,    rate, n, seed, mean, spread, part) {
  rate = chosen(what)
  for (seed = 1; (what, rate, seed) in accuracy; ++seed) mean += accuracy[what, rate, seed]
  n = seed - 1
  mean /= n
  for (seed = 1; seed <= n; ++seed) spread += (accuracy[what, rate, seed] - mean) ^ 2
  spread = n > 1 ? sqrt(spread / (n - 1)) : 0
  split(cell, part, /[^0-9.e-]+/)
  ++cells
  if (cell ~ /^[0-9]*\.[0-9]+ [^ ]+ [0-9]*\.[0-9]+/ && is(part[1], mean) && is(part[2], spread) &&
      (part[3] == "" || part[3] + 0 == rate + 0))
    return
  printf "%s:%d: %s has \"%s\", and the runs %.4f, %.4f at a rate of %s\n", FILENAME, FNR, what, cell, mean, spread, rate
  bad = 1
}

BEGIN {
  FS = ","
  while ((getline < runs) > 0) {
    what = $2 " in " $1
    if (!((what, $4) in known)) rate_of[what, ++rates[what]] = $4
    known[what, $4] = 1
    validation[what, $4, $5] = $10
    accuracy[what, $4, $5] = tolower($9) ~ /nan/ ? 0 : $11
  }
  FS = "|"
}

/^#/ { here = $0 == heading; table = 0 }
!here { next }

/^\|/ && !table++ {  # what the columns are
  for (i = 2; i < NF; ++i) {
    task[i] = tolower(trimmed($i))
    gsub(/,/, "", task[i])
  }
  next
}
/^\|/ && table == 1 { ++table }
/^\|/ {
  name = trimmed($2) ~ /^\(the whole sequence\)/ ? "attention" : trimmed($2)
  gsub(/`|,.*/, "", name)
  for (i = 3; i < NF; ++i)
    if ((name " in " task[i]) in rates) check(trimmed($i), name " in " task[i])
  next
}
table { here = 0 }

END {
  if (cells < least) {
    printf "of the table below \"%s\" %d cells have runs in %s, and not %d\n", heading, cells, runs, least
    bad = 1
  }
  exit bad
}
