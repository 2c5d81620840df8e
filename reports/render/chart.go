package render

import (
	"fmt"
	"math"
	"strings"
)

// chart is one SVG drawing as lists of primitives in drawing order. Colours are
// CSS classes of the page, so that the same drawing is legible light and dark.
type chart struct {
	Title   string
	Note    string
	Summary string // what the drawing shows, for readers who cannot see it
	W, H    float64
	Wide    bool // takes the whole row
	Legend  []legendItem
	Shades  []rect // behind the grid
	Grid    []path
	Lines   []path
	Bars    []rect
	Dots    []dot
	Labels  []label
	Hovers  []rect // transparent, above everything, with the numbers in a tooltip
}

type legendItem struct{ Class, Name string }

type rect struct {
	X, Y, W, H float64
	Class, Tip string
}

type path struct{ Class, D string }

type dot struct {
	X, Y, R    float64
	Class, Tip string
}

type label struct {
	X, Y                float64
	Class, Anchor, Body string
}

// Geometry of a plot, in SVG units.
const (
	plotW, plotH            = 560.0, 250.0
	marginLeft, marginRight = 50.0, 14.0
	marginTop, marginBottom = 24.0, 38.0
	stripH                  = 7.0 // the strip of machine stalls under a time plot
	charWidth               = 6.2 // of the label font, for what fits
	maxColumns              = 240 // columns of a time plot; longer runs are pooled
	tickCount               = 5
	decadesWithMinorTicks   = 2.2
	smallestLogValue        = 0.01
)

// axis maps values to coordinates, linearly or by decades.
type axis struct {
	lo, hi   float64
	from, to float64
	log      bool
}

func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		v, lo, hi = math.Log10(max(v, smallestLogValue)), math.Log10(lo), math.Log10(hi)
	}
	return a.from + (v-lo)/(hi-lo)*(a.to-a.from)
}

// linear makes an axis from 0 that ends on a round tick.
func linear(hi, from, to float64) (axis, []float64) {
	if hi <= 0 {
		hi = 1
	}
	step := niceStep(hi / tickCount)
	n := math.Ceil(hi/step - 1e-9)
	ticks := make([]float64, 0, int(n)+1)
	for i := range int(n) + 1 {
		ticks = append(ticks, float64(i)*step)
	}
	return axis{lo: 0, hi: n * step, from: from, to: to}, ticks
}

// logarithmic makes an axis of whole 1-2-5 ticks around [lo, hi].
func logarithmic(lo, hi, from, to float64) (axis, []float64) {
	lo = max(lo, smallestLogValue)
	hi = max(hi, lo*2)
	var all []float64
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for _, m := range []float64{1, 2, 5} {
			all = append(all, m*math.Pow(10, e))
		}
	}
	first, last := 0, len(all)-1
	for first+1 < len(all) && all[first+1] <= lo {
		first++
	}
	for last > 0 && all[last-1] >= hi {
		last--
	}
	a := axis{lo: all[first], hi: all[last], from: from, to: to, log: true}
	var ticks []float64
	fine := math.Log10(a.hi/a.lo) <= decadesWithMinorTicks
	for i := first; i <= last; i++ {
		if fine || i%3 == 0 {
			ticks = append(ticks, all[i])
		}
	}
	return a, ticks
}

func niceStep(raw float64) float64 {
	e := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*e*(1+1e-9) {
			return m * e
		}
	}
	return 10 * e
}

// frame draws the grid and the labels of both axes.
func (c *chart) frame(x, y axis, xTicks, yTicks []float64, xTitle string) {
	for _, v := range yTicks {
		at := y.at(v)
		c.Grid = append(c.Grid, path{"grid", fmt.Sprintf("M%s %sH%s", px(x.from), px(at), px(x.to))})
		c.Labels = append(c.Labels, label{x.from - 6, at + 4, "tick", "end", number(v)})
	}
	c.Grid = append(c.Grid, path{"axis", fmt.Sprintf("M%s %sH%s", px(x.from), px(y.from), px(x.to))})
	for _, v := range xTicks {
		c.Labels = append(c.Labels, label{x.at(v), c.H - 20, "tick", "middle", number(v)})
	}
	c.Labels = append(c.Labels, label{(x.from + x.to) / 2, c.H - 4, "tick", "middle", xTitle})
}

// line draws the known values; unknown ones leave a gap.
func (c *chart) line(class string, xs []float64, ys []*float64, x, y axis) {
	var d strings.Builder
	open := false
	for i, v := range ys {
		if v == nil {
			open = false
			continue
		}
		if open {
			fmt.Fprintf(&d, "L%s %s", px(x.at(xs[i])), px(y.at(*v)))
			continue
		}
		// The zero-length stroke shows a value that stands alone.
		fmt.Fprintf(&d, "M%s %sh0", px(x.at(xs[i])), px(y.at(*v)))
		open = true
	}
	if d.Len() > 0 {
		c.Lines = append(c.Lines, path{class, d.String()})
	}
}

// px prints a coordinate with one decimal: the drawing stays small and the same.
func px(v float64) string { return trimPx(fmt.Sprintf("%.1f", v)) }

func trimPx(s string) string { return strings.TrimSuffix(s, ".0") }
