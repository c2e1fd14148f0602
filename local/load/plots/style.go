package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colours of lines and letters are placeholders: the style below replaces them by colours that are visible on the
// reader's background, light or dark. The other colours are visible on both.
var (
	ink   = color.NRGBA{R: 1, G: 1, B: 1, A: 255}
	grid  = color.NRGBA{R: 2, G: 2, B: 2, A: 255}
	blue  = color.NRGBA{R: 0x3b, G: 0x82, B: 0xf6, A: 255}
	amber = color.NRGBA{R: 0xe0, G: 0x8e, B: 0x0b, A: 255}
	green = color.NRGBA{R: 0x12, G: 0xa8, B: 0x7a, A: 255}
	grey  = color.NRGBA{R: 0x8b, G: 0x93, B: 0xa1, A: 255}
)

const style = `<style>
:root { color-scheme: light dark; }
text { font-family: "Liberation Sans", Arial, Helvetica, sans-serif !important; }
[style*="fill:#010101"], text { fill: #1f2328 !important; }
[style*="stroke:#010101"] { stroke: #59636e !important; }
[style*="stroke:#020202"] { stroke: #d1d9e0 !important; }
@media (prefers-color-scheme: dark) {
[style*="fill:#010101"], text { fill: #e6edf3 !important; }
[style*="stroke:#010101"] { stroke: #9198a1 !important; }
[style*="stroke:#020202"] { stroke: #3d444d !important; }
}
</style>
`

// picture is one or more plots below each other.
type picture struct {
	plots         []*plot.Plot
	width, height vg.Length // of each
}

func (p picture) write(file string) error {
	canvas := vgsvg.New(p.width, p.height*vg.Length(len(p.plots)))
	tiles := draw.Tiles{Rows: len(p.plots), Cols: 1, PadY: vg.Points(6)}
	column := make([][]*plot.Plot, len(p.plots))
	for i, one := range p.plots {
		column[i] = []*plot.Plot{one}
	}
	cells := plot.Align(column, tiles, draw.New(canvas))
	for i, one := range p.plots {
		one.Draw(cells[i][0])
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	head, body, found := bytes.Cut(svg.Bytes(), []byte("<g "))
	if !found {
		return fmt.Errorf("write picture: there is nothing in it")
	}
	return os.WriteFile(file, bytes.Join([][]byte{head, []byte(style), []byte("<g "), body}, nil), 0o644)
}

// round places four to ten ticks at round numbers.
func round(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, times := range []float64{5, 2} {
		if step*times*4 <= high-low {
			step *= times
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(low / step); i*step <= high; i++ {
		text := thousands(i * step)
		if step < 1 {
			text = strconv.FormatFloat(i*step, 'g', 3, 64)
		}
		ticks = append(ticks, plot.Tick{Value: i * step, Label: text})
	}
	return ticks
}

// newPlot returns an empty plot in the common style.
func newPlot(title, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text = title
	p.Title.Padding = vg.Points(10)
	p.Y.Label.Text = y
	for _, text := range []*draw.TextStyle{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		text.Color, text.Font = ink, font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(11)}
	}
	p.Title.TextStyle.Font.Size = vg.Points(13)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = ink, ink
	}
	p.Y.Min = 0
	p.Y.Tick.Marker = plot.TickerFunc(round)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.ThumbnailWidth = vg.Points(14)
	p.Legend.Padding = vg.Points(2)
	p.Legend.YOffs = vg.Points(4)
	return p
}
