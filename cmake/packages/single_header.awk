# Prints all of infty as one header, for host compilers:
#   awk -v root=include -f single_header.awk /dev/null
# Each header of infty stands where it is included first; includes of other libraries stay, those
# that depend on nothing once.

function flatten(name,   path, line, depth, status, host, compiled) {
  seen[name] = 1
  path = root "/" name
  depth = 0
  while ((status = (getline line < path)) > 0) {
    sub(/\r$/, "", line)
    if (line ~ /^\/\/ SPDX-License-Identifier:/ || line ~ /^#pragma once/) continue
    if (line ~ /^#[ \t]*if/) {
      depth++
      # What is for host compilers is for all that read this header.
      host = depth == 1 && line ~ /^#if !defined\(__CUDACC__\)/
      # What a header adds for `infty::compiled`, infty.hpp includes for itself.
      compiled = depth == 1 && line ~ /^#if defined\(INFTY_COMPILED\)/
    }
    if (line ~ /^#[ \t]*el/) host = compiled = 0
    if (line ~ /^#[ \t]*endif/ && --depth == 0) compiled = 0
    if (line !~ /^#[ \t]*include/) {
      put(line)
    } else if (match(line, /<infty\/[^>]*>/)) {
      line = substr(line, RSTART + 1, RLENGTH - 2)
      if (line in seen || compiled) continue
      if (depth > 0 && !host)  # elsewhere it may be needed without the condition
        fail(path ": <" line "> is included in a condition that this script cannot inline")
      flatten(line)
    } else if (depth > 0) {
      put(line)
    } else if (!(line in kept)) {
      kept[line] = 1
      put(line)
    }
  }
  if (status < 0) fail("cannot read " path)
  if (depth != 0) fail(path ": #if and #endif do not match")
  close(path)
}

function put(line) {
  if (line != "" || last != "") print line
  last = line
}

function fail(why) {
  print "single_header: " why > "/dev/stderr"
  exit 1
}

BEGIN {
  print "// SPDX-License-Identifier: MIT"
  print "// All of infty in one header, for host compilers; needs C++20 and Eigen 3.4 or later. Made by"
  print "// `./dev single-header`: change the headers that it is made of, not this file."
  print "#pragma once"
  print ""
  print "#if defined(__CUDACC__)"
  print "#error \"nvcc takes infty's headers one by one, from include/ and cuda/\""
  print "#endif"
  print ""
  flatten("infty/version.hpp")
  flatten("infty/infty.hpp")
}
