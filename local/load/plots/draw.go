package main

import (
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

const (
	width  = vg.Length(640)
	height = vg.Length(320)

	barWidth = vg.Length(70)
)

var contestantColors = map[string]color.Color{"river": grey, "embedded": blue, "apache": amber}

func drawThroughput(r results) (picture, error) {
	p := newPlot("No-op jobs a second, insert and work at once: median, and each round", "jobs/s")
	horizontal(p)
	var medians, tops []float64
	var texts, ticks []string
	var colors []color.Color
	var rounds plotter.XYs
	for _, name := range names {
		rate, measured := r.Throughput.JobsPerS[name.key]
		if !measured {
			continue
		}
		text := thousands(rate.Median)
		if ratio, ours := r.Throughput.Ratios[name.key]; ours {
			text += fmt.Sprintf("  (%.2f of River)", ratio.Median)
		}
		top := rate.Median
		for _, round := range r.Throughput.Rounds {
			if round.Contestant == name.key {
				rounds = append(rounds, plotter.XY{X: float64(len(medians)), Y: round.JobsPerS})
				top = max(top, round.JobsPerS)
			}
		}
		tops = append(tops, top)
		medians, texts, ticks = append(medians, rate.Median), append(texts, text), append(ticks, name.text)
		colors = append(colors, contestantColors[name.key])
	}
	if err := bars(p, medians, tops, texts, colors); err != nil {
		return picture{}, err
	}
	p.NominalX(ticks...)
	err := dots(p, rounds, ink)
	return picture{[]*plot.Plot{p}, width, height}, err
}

// drawLatency draws a stroke from p50 to p99 for each contestant at each rate, and marks p95 on it.
func drawLatency(r results) (picture, error) {
	p := newPlot("From POST (River: insert) to handler start: p50, p95, p99", "ms, logarithmic")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
	horizontal(p)
	p.Y.Min, p.Y.Max = 1, 10
	var rates []int
	position := map[int]int{}
	for _, l := range r.Latency {
		if _, known := position[l.Rate]; !known {
			position[l.Rate] = len(rates)
			rates = append(rates, l.Rate)
		}
	}
	for i, name := range names {
		var ranges []plotter.XYs
		for _, l := range r.Latency {
			if l.Contestant != name.key {
				continue
			}
			x := float64(position[l.Rate]) + (float64(i)-1)*.2
			ranges = append(ranges, plotter.XYs{{X: x, Y: l.Start.P50}, {X: x, Y: l.Start.P95}, {X: x, Y: l.Start.P99}})
			p.Y.Min, p.Y.Max = min(p.Y.Min, l.Start.P50*.8), max(p.Y.Max, l.Start.P99*1.5)
		}
		if err := strokes(p, ranges, contestantColors[name.key], name.text); err != nil {
			return picture{}, err
		}
	}
	ticks := make([]string, len(rates))
	for i, rate := range rates {
		ticks[i] = thousands(float64(rate)) + "/s"
	}
	p.NominalX(ticks...)
	p.X.Min, p.X.Max = -.6, float64(len(rates))-.4
	return picture{[]*plot.Plot{p}, width, height}, nil
}

// strokes are the ranges of one contestant, with one entry in the legend.
func strokes(p *plot.Plot, ranges []plotter.XYs, c color.Color, name string) error {
	for i, at := range ranges {
		l, points, err := plotter.NewLinePoints(at)
		if err != nil {
			return err
		}
		l.Color, l.Width = c, vg.Points(3)
		points.Color, points.Radius, points.Shape = c, vg.Points(4), dash{}
		p.Add(l, points)
		if i == 0 {
			p.Legend.Add(name, l)
		}
		for j, text := range []string{"", "", fmt.Sprintf("%.1f", at[2].Y)} {
			if text == "" {
				continue
			}
			if err := label(p, at[j].X, at[j].Y, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// decades are ticks at 1, 2, 5, 10 …
func decades(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := .1; decade <= high; decade *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if at := decade * n; at >= low && at <= high {
				ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'g', 4, 64)})
			}
		}
	}
	return ticks
}

func drawBacklog(r results) (picture, error) {
	p := newPlot("Jobs a second while so much waits", "jobs/s")
	horizontal(p)
	var rates []float64
	var texts, ticks []string
	var colors []color.Color
	for _, c := range r.Backlog {
		rates, ticks = append(rates, c.JobsPerS), append(ticks, wrapped(c.Case))
		texts, colors = append(texts, fmt.Sprintf("%s (%.2f)", thousands(c.JobsPerS), c.Ratio)), append(colors, blue)
	}
	err := bars(p, rates, rates, texts, colors)
	p.NominalX(ticks...)
	return picture{[]*plot.Plot{p}, width + 120, height}, err
}

func drawScale(r results) (picture, error) {
	s := r.Scale
	p := newPlot(fmt.Sprintf("Workers of %d slots on handlers that sleep %d ms", s.Slots, s.SleepMs), "jobs/s")
	p.X.Label.Text = "workers"
	horizontal(p)
	var did, ideal plotter.XYs
	for _, step := range s.Steps {
		x := float64(step.Workers)
		did = append(did, plotter.XY{X: x, Y: step.JobsPerS})
		ideal = append(ideal, plotter.XY{X: x, Y: x * float64(s.Slots) * 1000 / float64(s.SleepMs)})
	}
	if err := line(p, ideal, grey, true, "ideal"); err != nil {
		return picture{}, err
	}
	if err := line(p, did, blue, false, "JobWeaver"); err != nil {
		return picture{}, err
	}
	for i, step := range s.Steps {
		if err := labelAt(p, did[i].X, did[i].Y, fmt.Sprintf("%.2f", step.Fraction), vg.Points(-15)); err != nil {
			return picture{}, err
		}
	}
	p.X.Tick.Marker = plot.TickerFunc(func(_, _ float64) (ticks []plot.Tick) {
		for _, at := range did {
			ticks = append(ticks, plot.Tick{Value: at.X, Label: fmt.Sprint(at.X)})
		}
		return ticks
	})
	p.X.Min, p.X.Max, p.Y.Max = .7, did[len(did)-1].X+.3, p.Y.Max*1.1
	return picture{[]*plot.Plot{p}, width, height}, nil
}
