# Tokens a second and rank, as a share of what one has alone, of ranks.csv: cd FOLDER_WITH_CSV && gnuplot .../ranks.gp
set terminal svg size 760,340 font 'sans-serif,13' background 'white'
set output 'ranks.svg'
set datafile separator ','
set multiplot layout 1,2 margins 0.07,0.98,0.19,0.88 spacing 0.08,0
set border 3
set tics nomirror out
set logscale x 2
set xtics (1, 4, 16, 64, 256, 1024, 4096)
set xlabel 'ranks' offset 0, 0.3
set yrange [0:1.05]
set key bottom left Left reverse samplen 2
of(way, gigabits) = strcol(1) eq way && $2 == gigabits ? $13 : NaN
colour(i) = word('#b91c1c #c2410c #1d4ed8', i)
do for [way in '"fixed batch" "growing batch"'] {
  set title way.', efficiency'
  plot for [i = 1:3] 'ranks.csv' skip 1 using 4:(of(way, 10**(i - 1))) with linespoints pt 7 ps 0.4 lw 2 lc rgb colour(i) \
         title sprintf('%d Gbit/s', 10**(i - 1)), \
       for [i = 1:3] '' skip 1 using 4:(of(way.' with overlap', 10**(i - 1))) with lines dt 2 lw 1 lc rgb colour(i) notitle
  unset key
}
unset multiplot
