# change_by_head
Loss change, gates replaced: zero
Each cell is the loss's change when that head's gates alone are replaced.
set title 'Loss change, gates replaced: zero'
set xlabel 'KV head'
set ylabel 'layer'
set xtics ('0' 0, '1' 1)
set ytics ('1' 0, '3' 1)
$map << EOD
0.075 0.225 
-0.1 0.05 
EOD
set palette defined (0 '#440154', 1 '#472c7a', 2 '#3b518b', 3 '#2c718e', 4 '#21908d', 5 '#27ad81', 6 '#5cc863', 7 '#aadc32', 8 '#fde725') maxcolors 64
set cbrange [-0.1:0.225]
unset grid
unset key
set xrange [-0.5:1.5]
set yrange [-0.5:1.5]
plot $map matrix with image pixels, $map matrix using 1:2:($3 < 0.07875 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#ffffff', $map matrix using 1:2:($3 >= 0.07875 ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '#000001'
# change_by_category
Loss change, gates replaced: mean
The gates of one group of tokens replaced at a time; bootstrap intervals.
set title 'Loss change, gates replaced: mean'
set xlabel ''
set ylabel 'loss, nats'
set xtics ('form' 0, 'meaning' 1)
$bars << EOD
0 0.025 -0.05 0.1
1 0 -0.05 0.05
EOD
set xtics rotate by -35
set yrange [*<0:0<*]
set xrange [-0.7:1.7]
unset key
set boxwidth 0.7
plot $bars using 1:2 with boxes fs solid 0.75 noborder lc rgb '#0072b2', $bars using 1:2:3:4 with yerrorbars pt 0 lw 1.5 lc rgb '#444444'
# change_by_layer
Loss change, gates replaced: scale=-2
One layer's gates replaced at a time; the band is the bootstrap interval.
set title 'Loss change, gates replaced: scale=-2'
set xlabel 'layer'
set ylabel 'loss, nats'
set xtics 1
set key outside right
$line0 << EOD
1 0.075 0.05 0.1
3 NaN NaN NaN
EOD
set yrange [*<0:0<*]
set arrow from graph 0, first 0 to graph 1, first 0 nohead lc rgb '#888888' lw 0.8
plot $line0 using 1:3:4 with filledcurves fs transparent solid 0.2 noborder lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#0072b2' title 'change'
