# Time and memory of a token against the context: cd FOLDER_WITH_CSV && gnuplot .../context.gp
set terminal svg size 760,360 font 'sans-serif,13' background 'white'
set output 'context.svg'
set datafile separator ','
# The axes hold every point of every series, and the left one the key above them.
stats 'context.csv' skip 1 using 2:($3 * 1e6) name 'time' nooutput
stats 'context.csv' skip 1 using 2:($4 / 2**20) name 'size' nooutput
set multiplot layout 1,2 margins 0.11,0.98,0.2,0.9 spacing 0.12,0
set border 3
set tics nomirror out
set logscale xy
set xlabel 'tokens of context' offset 0, 0.3
set xrange [time_min_x / 1.2:time_max_x * 1.2]
set xtics ('1k' 1e3, '10k' 1e4, '100k' 1e5, '1M' 1e6)
set key top left Left reverse samplen 2
of(name, y) = strcol(1) eq name ? y : NaN

set title 'time of a token, µs'
set format y '10^{%T}'
set yrange [time_min_y / 1.5:time_max_y * 30]
plot 'context.csv' skip 1 using 2:(of('full', $3 * 1e6)) with linespoints pt 7 ps 0.5 lw 2 lc '#888888' title 'attention to all', \
     '' skip 1 using 2:(of('STM', $3 * 1e6)) with linespoints pt 7 ps 0.5 lw 2 lc '#1d4ed8' title 'short-term memory of all', \
     '' skip 1 using 2:(of('LTM', $3 * 1e6)) with linespoints pt 7 ps 0.5 lw 2 lc '#c2410c' title 'long-term memory'

set title 'peak of all tensors, MiB'
set yrange [size_min_y / 1.5:size_max_y * 1.5]
plot 'context.csv' skip 1 using 2:(of('full', $4 / 2**20)) with linespoints pt 7 ps 0.5 lw 2 lc '#888888' notitle, \
     '' skip 1 using 2:(of('STM', $4 / 2**20)) with linespoints pt 7 ps 0.5 lw 2 lc '#1d4ed8' notitle, \
     '' skip 1 using 2:(of('LTM', $4 / 2**20)) with linespoints pt 7 ps 0.5 lw 2 lc '#c2410c' notitle
unset multiplot
