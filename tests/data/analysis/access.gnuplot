# lambdas
Static value mix
v' = λ1 v1 + λ2 v.
set title 'Static value mix'
set xlabel 'layer'
set ylabel 'weight'
set xtics 1
set key outside right
$line0 << EOD
1 -0.2571429
2 -0.1142857
3 0.02857143
EOD
$line1 << EOD
1 0.8571429
2 0.7142857
3 0.5714286
EOD
set yrange [*<0:0<*]
set arrow from graph 0, first 0 to graph 1, first 0 nohead lc rgb '#888888' lw 0.8
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#0072b2' title 'λ1 (first values)', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#d55e00' title 'λ2 (own values)'
# first_share
Share of the first values
|λ1 v1| / (|λ1 v1| + |λ2 v|), mean over tokens.
set title 'Share of the first values'
set xlabel 'KV head'
set ylabel 'layer'
set xtics ('0' 0, '1' 1)
set ytics ('1' 0, '2' 1, '3' 2)
$map << EOD
0.04761905 NaN 
0.0952381 NaN 
0.1428571 NaN 
EOD
set palette defined (0 '#440154', 1 '#472c7a', 2 '#3b518b', 3 '#2c718e', 4 '#21908d', 5 '#27ad81', 6 '#5cc863', 7 '#aadc32', 8 '#fde725') maxcolors 64
set cbrange [0.04761905:0.1428571]
unset grid
unset key
set xrange [-0.5:1.5]
set yrange [-0.5:2.5]
plot $map matrix with image pixels, $map matrix using 1:2:($3 < 0.09999998 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#ffffff', $map matrix using 1:2:($3 >= 0.09999998 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#000001'
# access_weights
Mean weight of each source
A row reads the depth; a column is the embedding or what a block or module put out.
set title 'Mean weight of each source'
set xlabel 'source (0: embedding)'
set ylabel ''
set xtics ('0' 0, '1' 1, '2' 2, '3' 3)
set ytics ('block 1' 0, 'block 2' 1, 'block 3' 2)
$map << EOD
0.1428571 -0.1428571 NaN NaN 
0.2857143 NaN -0.2857143 NaN 
0.4285714 NaN NaN -0.4285714 
EOD
set palette defined (0 '#440154', 1 '#472c7a', 2 '#3b518b', 3 '#2c718e', 4 '#21908d', 5 '#27ad81', 6 '#5cc863', 7 '#aadc32', 8 '#fde725') maxcolors 64
set cbrange [-0.4285714:0.4285714]
unset grid
unset key
set xrange [-0.5:3.5]
set yrange [-0.5:2.5]
plot $map matrix with image pixels, $map matrix using 1:2:($3 < 0.04285714 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#ffffff', $map matrix using 1:2:($3 >= 0.04285714 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#000001'
# access_depth
Weight on early representations
Of the sum of the weights' magnitudes.
set title 'Weight on early representations'
set xlabel 'reader, by depth'
set ylabel 'share'
set xtics 1
set key outside right
$line0 << EOD
0 0.07142857
1 NaN
2 0.2142857
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#0072b2' title 'share of all but the newest source'
# dynamics_early_share
Weight on early representations over training
Over the checkpoints of the run; step 0 is the model at initialisation.
set title 'Weight on early representations over training'
set xlabel 'step'
set ylabel 'Weight on early representations over training'
set key outside right
$line0 << EOD
0 0.07142857
10 0.07142857
EOD
$line2 << EOD
0 0.2142857
10 0.2142857
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#440154' title 'block 1', $line2 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#aadc32' title 'block 3'
