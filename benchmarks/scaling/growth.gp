# How time and memory grow with each size: cd FOLDER_WITH_CSV && gnuplot .../growth.gp
# Measured as points; what is counted as a line, laid through the largest.
set terminal pngcairo size 1180,720 font 'sans,10'
set output 'growth.png'
set datafile separator ','
of(what, axis, y) = strcol(1) eq what && strcol(2) eq axis ? y : NaN
set multiplot layout 4,5 margins 0.07,0.985,0.08,0.93 spacing 0.042,0.075
set border 3
set tics nomirror out
set logscale xy 2
set offsets graph 0.08, graph 0.08, graph 0.1, graph 0.1
unset key
axes = 'width layers length rows N'
do for [row = 1:4] {
  what = row <= 2 ? 'training step' : 'next token'
  m = row % 2 ? 4 : 6
  c = row % 2 ? 5 : 7
  color = row % 2 ? '#c2410c' : '#1d4ed8'
  unit = row % 2 ? (row == 1 ? 1e3 : 1e6) : 1. / 2**20
  label = row == 1 ? 'a step, ms' : row == 2 ? 'a step, MiB' : row == 3 ? 'a token, µs' : 'a token, MiB'
  do for [axis in axes] {
    if (row == 1) { set title axis } else { unset title }
    if (axis eq 'width') { set ylabel label offset 1, 0 } else { unset ylabel }
    stats 'growth.csv' skip 1 using (of(what, axis, $3)):(of(what, axis, column(m))) name 'M' nooutput
    stats 'growth.csv' skip 1 using (of(what, axis, $3)):(of(what, axis, column(c))) name 'C' nooutput
    ratio = M_max_y / C_max_y
    plot 'growth.csv' skip 1 using (of(what, axis, $3)):(column(c) * ratio * unit) with lines lw 1.5 dt 2 lc '#888888', \
         '' skip 1 using (of(what, axis, $3)):(column(m) * unit) with points pt 7 ps 0.5 lc rgb color
  }
}
unset multiplot
