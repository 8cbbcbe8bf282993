# The sweeps of docs/lifelong.md. Data: lifelong_sweeps.csv, means and standard deviations of runs of examples/lifelong
# with the options that the page names; picture: cd docs/figures && gnuplot lifelong_sweeps.gp
set terminal pngcairo size 900,700 font 'sans,10'
set output 'lifelong_sweeps.png'
set datafile separator ','
set datafile missing NaN
set logscale x
set yrange [0:1]
set ylabel 'mean accuracy behind all tasks'
set grid lc rgb '#dddddd'
set key bottom right
# x of a row of a panel and a method: 0 stands at 1.
place(x, panel, method) = strcol(1) eq panel && strcol(2) eq method ? (x > 0 ? x : 1) : NaN
methods = 'replay mbpa mbpa++ meta-mbpa'
set multiplot layout 2,2
do for [panel in 'memory interval K L'] {
  set xlabel panel eq 'memory' ? 'share of the stream that is held, %' : \
    panel eq 'interval' ? 'examples between two replays, ten of which are drawn' : \
    panel eq 'K' ? 'K, neighbours of a step' : 'L, steps (0 stands at 1)'
  set xrange [panel eq 'interval' ? 8 : .8 : panel eq 'K' ? 80 : 130]
  numbers = panel eq 'memory' ? '1 2 3 4' : panel eq 'interval' ? '1 3' : '3 4'
  # Methods stand a little beside each other.
  plot for [i in numbers] 'lifelong_sweeps.csv' skip 1 \
    using (place($3, panel, word(methods, int(i))) * (1 + .015 * (int(i) - 1))):4:5 \
    with yerrorlines pt 7 lt int(i) title word(methods, int(i))
}
unset multiplot
