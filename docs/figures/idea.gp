# The guide's figure. Data: INFTY_FIGURE_DATA=docs/figures/idea.dat, then the program test_docs_snippets;
# picture: cd docs/figures && gnuplot idea.gp
set terminal svg size 760,680 font 'sans-serif,13' background 'white'
set output 'idea.svg'
set multiplot layout 3,1 margins 0.06,0.98,0.08,0.95 spacing 0,0.11
set xrange [0:1]
set yrange [-2:2.2]
set ytics 1
set border 3
set tics nomirror
set key at graph 1, 1.18 right top horizontal maxrows 1 samplen 2 width -2
data = 'idea.dat'
tau = 0.6

set label 2 'fit: vectors become a signal on [0, 1]' at graph 0, 1.13
plot data index 1 with lines lw 2 lc '#1f6fb4' title 'X(t)', \
     data index 0 with points pt 7 ps 0.5 lc '#444444' title '24 vectors'

set label 2 'extend: contract to [0, τ], refit' at graph 0, 1.13
set arrow 1 from tau, -2 to tau, 2.2 nohead dt 2 lc '#888888'
set label 1 'τ' at tau - 0.02, -1.7
plot data index 4 with lines lw 1 dt 2 lc '#1f6fb4' title 'X(t / τ)', \
     data index 2 with points pt 7 ps 0.5 lc '#444444' title '12 vectors', \
     data index 3 with lines lw 2 lc '#c0392b' title "X'(t)"

unset arrow 1
unset label 1
set label 2 'read: the expectation under a density' at graph 0, 1.13
set xlabel 't, from the oldest to the newest' offset 0, 0.5
plot data index 5 using 1:($2 / 5) with filledcurves y1=0 lc '#f5c06f' fs solid 0.6 title 'p(t) / 5', \
     data index 3 with lines lw 2 lc '#c0392b' title "X'(t)", \
     data index 6 with points pt 7 ps 1 lc '#000000' title "E_p[X']"
unset multiplot
