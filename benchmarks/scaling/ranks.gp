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
colour(i) = word('#b91c1c #c2410c #1d4ed8 #15803d #7e22ce #0f766e', (i - 1) % 6 + 1)
# The links that were asked for, each once.
links = ''
known(link) = strstrt(links.' ', ' '.link.' ') > 0
stats 'ranks.csv' skip 1 using (links = known(strcol(2)) ? links : links.' '.strcol(2), 0) nooutput
do for [way in '"fixed batch" "growing batch"'] {
  set title way.', efficiency'
  plot for [i = 1:words(links)] 'ranks.csv' skip 1 using 4:(of(way, word(links, i) + 0.)) with linespoints pt 7 ps 0.4 lw 2 \
         lc rgb colour(i) title word(links, i).' Gbit/s', \
       for [i = 1:words(links)] '' skip 1 using 4:(of(way.' with overlap', word(links, i) + 0.)) with lines dt 2 lw 1 \
         lc rgb colour(i) notitle
  unset key
}
unset multiplot
