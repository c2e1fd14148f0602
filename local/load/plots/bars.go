package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// horizontal are lines across the plot at the ticks of Y.
func horizontal(p *plot.Plot) {
	lines := plotter.NewGrid()
	lines.Horizontal.Color, lines.Vertical.Color = grid, nil
	lines.Horizontal.Dashes = nil
	p.Add(lines)
}

// bars has one bar for each value, with a text above the bar and above anything else drawn there.
func bars(p *plot.Plot, values, tops []float64, texts []string, colors []color.Color) error {
	for i, value := range values {
		bar, err := plotter.NewBarChart(plotter.Values{value}, barWidth)
		if err != nil {
			return err
		}
		bar.XMin, bar.Color, bar.LineStyle.Width = float64(i), colors[i], 0
		p.Add(bar)
		if err := label(p, float64(i), tops[i], texts[i]); err != nil {
			return err
		}
		p.Y.Max = max(p.Y.Max, tops[i]*1.12)
	}
	p.X.Min, p.X.Max = -.6, float64(len(values))-.4
	return nil
}

// label writes a text above a point.
func label(p *plot.Plot, x, y float64, text string) error {
	return labelAt(p, x, y, text, vg.Points(4))
}

func labelAt(p *plot.Plot, x, y float64, text string, above vg.Length) error {
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x, Y: y}}, Labels: []string{text}})
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Color = ink
		labels.TextStyle[i].Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(10.5)}
		labels.TextStyle[i].XAlign = draw.XCenter
	}
	labels.Offset.Y = above
	p.Add(labels)
	return nil
}

// dots are single measurements.
func dots(p *plot.Plot, at plotter.XYs, c color.Color) error {
	scatter, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
	p.Add(scatter)
	return nil
}

// line is a line with points, in the legend by its name.
func line(p *plot.Plot, at plotter.XYs, c color.Color, dashed bool, name string) error {
	l, points, err := plotter.NewLinePoints(at)
	if err != nil {
		return err
	}
	l.Color, l.Width = c, vg.Points(2)
	points.Color, points.Radius, points.Shape = c, vg.Points(2.5), draw.CircleGlyph{}
	p.Add(l)
	if dashed {
		l.Dashes = []vg.Length{vg.Points(5), vg.Points(4)}
		p.Legend.Add(name, l)
		return nil
	}
	p.Add(points)
	p.Legend.Add(name, l, points)
	return nil
}

// thousands writes 12345 as 12,345.
func thousands(n float64) string {
	if n < 1000 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%s,%03d", thousands(float64(int(n+.5)/1000)), int(n+.5)%1000)
}
