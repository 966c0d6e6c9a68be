# heads_mean
Mean gate
Each cell is a KV head of a layer.
set title 'Mean gate'
set xlabel 'KV head'
set ylabel 'layer'
set xtics ('0' 0, '1' 1)
set ytics ('1' 0, '3' 1)
$map << EOD
0.234375 0.246875 
0.2609375 0.2421875 
EOD
set palette defined (0 '#440154', 1 '#472c7a', 2 '#3b518b', 3 '#2c718e', 4 '#21908d', 5 '#27ad81', 6 '#5cc863', 7 '#aadc32', 8 '#fde725') maxcolors 64
set cbrange [0.234375:0.2609375]
unset grid
unset key
set xrange [-0.5:1.5]
set yrange [-0.5:1.5]
plot $map matrix with image pixels, $map matrix using 1:2:($3 < 0.2489844 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#ffffff', $map matrix using 1:2:($3 >= 0.2489844 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#000001'
# heads_open
Share of tokens with an open gate
Each cell is a KV head of a layer.
set title 'Share of tokens with an open gate'
set xlabel 'KV head'
set ylabel 'layer'
set xtics ('0' 0, '1' 1)
set ytics ('1' 0, '3' 1)
$map << EOD
0.55 0.575 
0.6 0.55 
EOD
set palette defined (0 '#440154', 1 '#472c7a', 2 '#3b518b', 3 '#2c718e', 4 '#21908d', 5 '#27ad81', 6 '#5cc863', 7 '#aadc32', 8 '#fde725') maxcolors 64
set cbrange [0.55:0.6]
unset grid
unset key
set xrange [-0.5:1.5]
set yrange [-0.5:1.5]
plot $map matrix with image pixels, $map matrix using 1:2:($3 < 0.5775 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#ffffff', $map matrix using 1:2:($3 >= 0.5775 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#000001'
# depth_mean
Mean gate by layer
All heads of a layer together. Dashed: the same model before training, over the same tokens.
set title 'Mean gate by layer'
set xlabel 'layer'
set ylabel 'Mean gate by layer'
set xtics 1
set key outside right
$line0 << EOD
1 0.240625
3 0.2515625
EOD
$line1 << EOD
1 0.3179688
3 0.33125
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#0072b2' title 'trained', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#d55e00' dt 2 title 'at initialisation'
# depth_zero
Share of gates that are exactly zero
All heads of a layer together. Dashed: the same model before training, over the same tokens.
set title 'Share of gates that are exactly zero'
set xlabel 'layer'
set ylabel 'Share of gates that are exactly zero'
set xtics 1
set key outside right
$line0 << EOD
1 0.4375
3 0.425
EOD
$line1 << EOD
1 0.3625
3 0.3375
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#0072b2' title 'trained', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#d55e00' dt 2 title 'at initialisation'
# categories
Mean gate by token class
All layers and heads together; the lines are bootstrap intervals.
set title 'Mean gate by token class'
set xlabel ''
set ylabel 'mean gate'
set xtics ('x' 0, 'y' 1, 'a' 2)
$bars << EOD
0 0.25 0.2354167 0.2628134
1 0.25 0.2286133 0.2680288
2 0.2379808 0.2213542 0.2563616
EOD
set xtics rotate by -35
set yrange [*<0:0<*]
set xrange [-0.7:2.7]
unset key
set boxwidth 0.7
plot $bars using 1:2 with boxes fs solid 0.75 noborder lc rgb '#0072b2', $bars using 1:2:3:4 with yerrorbars pt 0 lw 1.5 lc rgb '#444444'
# category_depth
Mean gate by token group
Bands are bootstrap intervals.
set title 'Mean gate by token group'
set xlabel 'layer'
set ylabel 'mean gate'
set xtics 1
set key outside right
$line0 << EOD
1 0.255787 0.2427885 0.2695871
3 0.2326389 0.2164352 0.25
EOD
$line1 << EOD
1 0.2091346 0.1632161 0.2596154
3 0.2908654 0.2636068 0.3104911
EOD
plot $line0 using 1:3:4 with filledcurves fs transparent solid 0.2 noborder lc rgb '#0072b2' notitle, $line1 using 1:3:4 with filledcurves fs transparent solid 0.2 noborder lc rgb '#d55e00' notitle, $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#0072b2' title 'form', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#d55e00' title 'meaning'
# contrast
Mean gate, meaning minus form
The band is the bootstrap interval of the difference.
set title 'Mean gate, meaning minus form'
set xlabel 'layer'
set ylabel 'difference'
set xtics 1
set key outside right
$line0 << EOD
1 -0.04665242 -0.1081287 0.01424501
3 0.0582265 0.03242188 0.08111264
EOD
set yrange [*<0:0<*]
set arrow from graph 0, first 0 to graph 1, first 0 nohead lc rgb '#888888' lw 0.8
plot $line0 using 1:3:4 with filledcurves fs transparent solid 0.2 noborder lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#0072b2' title 'difference'
# histograms
Distribution of the gates that are not zero
All heads of a layer together; exact zeros count for the density but are not drawn.
set title 'Distribution of the gates that are not zero'
set xlabel 'gate'
set ylabel 'density'
set logscale y 10
set key outside right
$line0 << EOD
0.0673828 0.7420291
0.2021484 0.5565218
0.3378906 0.7314283
0.4726562 0.5647059
0.6074218 0.6400002
0.7441406 0.6399998
EOD
$line1 << EOD
0.0673828 0.6492755
0.2021484 0.7420291
0.3378906 0.5485712
0.4726562 0.7529412
0.6074218 0.5485716
0.7441406 0.6399998
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#440154' title 'layer 1', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#aadc32' title 'layer 3'
# positions
Mean gate by position
A point is the mean from its position to the next point's.
set title 'Mean gate by position'
set xlabel 'position in the window (from 1)'
set ylabel 'mean gate'
set logscale x 2
set key outside right
$line0 << EOD
1 0.2625
2 0.275
3 0.196875
5 0.2484375
EOD
$line1 << EOD
1 0.23125
2 0.2375
3 0.275
5 0.2484375
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#440154' title 'layer 1', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#aadc32' title 'layer 3'
# dynamics_mean
Mean gate over training
Over the checkpoints of the run; step 0 is the model at initialisation.
set title 'Mean gate over training'
set xlabel 'step'
set ylabel 'Mean gate over training'
set key outside right
$line0 << EOD
0 0.3179688
10 0.240625
EOD
$line1 << EOD
0 0.33125
10 0.2515625
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#440154' title 'layer 1', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#aadc32' title 'layer 3'
# dynamics_zero
Share of zero gates over training
Over the checkpoints of the run; step 0 is the model at initialisation.
set title 'Share of zero gates over training'
set xlabel 'step'
set ylabel 'Share of zero gates over training'
set key outside right
$line0 << EOD
0 0.3625
10 0.4375
EOD
$line1 << EOD
0 0.3375
10 0.425
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#440154' title 'layer 1', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#aadc32' title 'layer 3'
# dynamics_contrast
Contrast of token groups over training
Over the checkpoints of the run; step 0 is the model at initialisation.
set title 'Contrast of token groups over training'
set xlabel 'step'
set ylabel 'Contrast of token groups over training'
set key outside right
$line0 << EOD
0 -0.04371439
10 -0.04665242
EOD
$line1 << EOD
0 0.05769231
10 0.0582265
EOD
plot $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#440154' title 'layer 1', $line1 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#aadc32' title 'layer 3'
