# The figure of docs/gpt2_programs.md: perplexity against the length of the context. Data: context.csv, what
# `gpt2 perplexity --contexts` wrote of a fine-tuned model of each memory; picture: cd docs/figures/gpt2 && gnuplot context.gp
set terminal pngcairo size 800,500 font 'sans,11'
set output 'context.png'
set datafile separator ','
set logscale xy 2
set xrange [56:2340]
set yrange [70:180]
set xtics (64,128,256,512,1024,2048)
set ytics (70,75,80,90,100,120,140,160,180)
set xlabel 'tokens of the window; beyond 256, a segment, memories alone read on'
set ylabel 'perplexity of a token'
set grid lc rgb '#dddddd'
set key top right
set datafile missing NaN
plot for [memory in 'none infty sticky compressive'] 'context.csv' skip 1 \
  using (strcol(1) eq memory ? $2 : NaN):5 with linespoints pt 7 title memory
