package main

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawCost stacks the processes' shares.
func drawCost(r results) (picture, error) {
	p := newPlot("Processor time of a no-op job, the load on it not counted", "µs")
	horizontal(p)
	var ticks []string
	var costs []map[string]float64
	for _, name := range names {
		cpu, measured := r.Cost.CPU[name.key]
		if name.key == "river" {
			cpu = r.meanCPU(name.key)
			measured = len(cpu) > 0
		}
		if measured {
			ticks, costs = append(ticks, name.text), append(costs, cpu)
		}
	}
	sums := make([]float64, len(costs))
	var below *plotter.BarChart
	for _, process := range []struct {
		key, text string
		color     color.Color
	}{
		{"postgres", "PostgreSQL", blue}, {"functions", "functions (Go)", green},
		{"broker", "broker", amber}, {"river", "River (Go), which loads itself", grey},
	} {
		values := make(plotter.Values, len(costs))
		for i, cpu := range costs {
			values[i] = cpu[process.key]
			sums[i] += values[i]
		}
		chart, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return picture{}, err
		}
		chart.Color, chart.LineStyle.Width = process.color, 0
		if below != nil {
			chart.StackOn(below)
		}
		below = chart
		p.Add(chart)
		p.Legend.Add(process.text, chart)
	}
	for i, sum := range sums {
		if err := label(p, float64(i), sum, thousands(sum)); err != nil {
			return picture{}, err
		}
		p.Y.Max = max(p.Y.Max, sum*1.15)
	}
	p.NominalX(ticks...)
	p.X.Min, p.X.Max = -.6, float64(len(costs))-.4
	return picture{[]*plot.Plot{p}, width, height}, nil
}

// drawSoak draws the figures that must stay flat on three Y axes, over the time.
func drawSoak(r results) (picture, error) {
	panels := []struct {
		title, y string
		lines    []soakLine
	}{
		{"Soak at " + thousands(r.Soak.Rate) + " jobs/s: from POST to handler start", "ms", []soakLine{
			{"p50", blue, func(m minute) float64 { return m.Start.P50 }},
			{"p99", amber, func(m minute) float64 { return m.Start.P99 }},
		}},
		{"Memory", "MiB", []soakLine{
			{"functions", green, func(m minute) float64 { return m.FunctionsMiB }},
			{"PostgreSQL", blue, func(m minute) float64 { return m.PostgresMiB }},
		}},
		{"Tables and indexes, for each job so far", "bytes", []soakLine{
			{"a job", grey, func(m minute) float64 { return m.BytesPerJob }},
		}},
	}
	var plots []*plot.Plot
	for _, panel := range panels {
		p := newPlot(panel.title, panel.y)
		p.X.Label.Text = "minutes"
		p.X.Tick.Marker = plot.TickerFunc(round)
		horizontal(p)
		for _, one := range panel.lines {
			var at plotter.XYs
			for _, m := range r.Soak.Minutes {
				at = append(at, plotter.XY{X: m.Ended / 60, Y: one.value(m)})
				p.Y.Max = max(p.Y.Max, one.value(m)*1.25)
			}
			if err := line(p, at, one.color, false, one.name); err != nil {
				return picture{}, err
			}
		}
		p.Y.Min = 0
		plots = append(plots, p)
	}
	return picture{plots, width, height * 3 / 4}, nil
}

type soakLine struct {
	name  string
	color color.Color
	value func(minute) float64
}

// wrapped breaks a long name into two lines.
func wrapped(text string) string {
	words := strings.Fields(text)
	if len(words) < 3 {
		return text
	}
	middle := (len(words) + 1) / 2
	return strings.Join(words[:middle], " ") + "\n" + strings.Join(words[middle:], " ")
}

// dash draws a short horizontal line across a vertical one.
type dash struct{}

// DrawGlyph draws it.
func (dash) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(3)})
	var path vg.Path
	path.Move(vg.Point{X: at.X - style.Radius, Y: at.Y})
	path.Line(vg.Point{X: at.X + style.Radius, Y: at.Y})
	c.Stroke(path)
}
