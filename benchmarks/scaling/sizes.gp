# Time of a token against N, L, batch and threads: cd FOLDER_WITH_CSV && gnuplot .../sizes.gp
set terminal svg size 760,280 font 'sans-serif,13' background 'white'
set output 'sizes.svg'
set datafile separator ','
set multiplot layout 1,4 margins 0.07,0.98,0.22,0.86 spacing 0.055,0 title 'time of a token, µs'
set border 3
set tics nomirror out
set logscale x 2
set offsets graph 0.06, graph 0.06, 0, 0
set xtics (1, 2, 4, 8, 16, 64, 256, 1024)
set yrange [0:*]
unset key
of(name, y) = strcol(1) eq name ? y : NaN
do for [axis in 'N L batch threads'] {
  set xlabel axis offset 0, 0.3
  plot 'sizes.csv' skip 1 using (of(axis, $2)):($3 * 1e6) with linespoints pt 7 ps 0.6 lw 2 lc '#c2410c'
}
unset multiplot
