package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"cmppgateway/reports/result"
)

// bucket is one column of a time plot: one second, or several pooled.
type bucket struct {
	from, to                               float64
	step                                   string
	offered, accepted, firstSubmit, final  float64
	p50, p95, p99, inFlight, hiccup, steal *float64
}

// pool groups seconds so that a long run still fits a plot: rates are means, the
// latencies and stalls are those of the worst second, so no peak disappears.
func pool(series []result.Second) (buckets []bucket, width int) {
	if len(series) == 0 {
		return nil, 1
	}
	width = (len(series) + maxColumns - 1) / maxColumns
	for part := range slices.Chunk(series, width) {
		b := bucket{from: float64(part[0].Second), to: float64(part[len(part)-1].Second + 1), step: part[0].Step}
		n := float64(len(part))
		for _, s := range part {
			b.offered += float64(s.Offered) / n
			b.accepted += float64(s.Accepted) / n
			b.firstSubmit += float64(s.FirstSubmit) / n
			b.final += float64(s.Final) / n
			b.inFlight = worst(b.inFlight, new(float64(s.InFlight)))
			b.p50, b.p95, b.p99 = worst(b.p50, s.P50), worst(b.p95, s.P95), worst(b.p99, s.P99)
			b.hiccup, b.steal = worst(b.hiccup, s.HiccupMS), worst(b.steal, s.Steal)
		}
		buckets = append(buckets, b)
	}
	return buckets, width
}

func worst(a, b *float64) *float64 {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}

// Marks of the strip under a time plot: a stall or a share of stolen time above these.
const (
	stallMarkMS = 3.0
	stealMark   = 0.02
)

// seriesCharts draws what happened second by second; all share one x axis.
func seriesCharts(run *result.Run) []chart {
	buckets, width := pool(run.Series)
	if len(buckets) == 0 {
		return nil
	}
	rates := timeChart(run, buckets, width, "Messages per second", []curve{
		{"s-muted", "offered", func(b bucket) *float64 { return &b.offered }},
		{"s1", "accepted", func(b bucket) *float64 { return &b.accepted }},
		{"s2", "first supplier SUBMIT", func(b bucket) *float64 { return &b.firstSubmit }},
		{"s3", "final fate", func(b bucket) *float64 { return &b.final }},
	}, false)
	lat := timeChart(run, buckets, width, "SUBMIT_RESP latency, ms (log scale)", []curve{
		{"q1", "P50", func(b bucket) *float64 { return b.p50 }},
		{"q2", "P95", func(b bucket) *float64 { return b.p95 }},
		{"q3", "P99", func(b bucket) *float64 { return b.p99 }},
	}, true)
	lat.Note = strings.TrimPrefix(lat.Note+" "+thin(run.Series), " ")
	fly := timeChart(run, buckets, width, "In flight at suppliers", []curve{
		{"s1", "submits waiting for an answer", func(b bucket) *float64 { return b.inFlight }},
	}, false)
	return []chart{rates, lat, fly}
}

// thin says why a percentile has gaps.
func thin(series []result.Second) string {
	var p95, p99, n int
	for _, s := range series {
		if s.Accepted == 0 {
			continue
		}
		n++
		if s.P95 == nil {
			p95++
		}
		if s.P99 == nil {
			p99++
		}
	}
	switch {
	case n == 0 || p95+p99 == 0:
		return ""
	case p95 == 0:
		return fmt.Sprintf("P99 is missing in %d of %d seconds: fewer than %d answers.", p99, n, result.MinP99)
	}
	return fmt.Sprintf("P95 is missing in %d and P99 in %d of %d seconds: too few answers.", p95, p99, n)
}

type curve struct {
	class, name string
	value       func(bucket) *float64
}

func timeChart(run *result.Run, buckets []bucket, width int, title string, curves []curve, log bool) chart {
	c := chart{Title: title, W: plotW, H: plotH}
	if width > 1 {
		c.Note = fmt.Sprintf("Each point is %d s: mean rates, worst second for latencies and stalls.", width)
	}
	lo, hi := math.Inf(1), 0.0
	for _, b := range buckets {
		for _, cv := range curves {
			if v := cv.value(b); v != nil {
				lo, hi = min(lo, *v), max(hi, *v)
			}
		}
	}
	if log && hi == 0 {
		c.Note = "No second had enough answers for a percentile."
		lo = 1
	}
	bottom := plotH - marginBottom - stripH
	y, yTicks := linear(hi, bottom, marginTop)
	if log {
		y, yTicks = logarithmic(lo, hi, bottom, marginTop)
	}
	start, end := buckets[0].from, buckets[len(buckets)-1].to
	x := axis{lo: start, hi: end, from: marginLeft, to: plotW - marginRight}
	c.frame(x, y, timeTicks(start, end), yTicks, "seconds since the start")
	c.phases(buckets, x)

	xs := make([]float64, len(buckets))
	for i, b := range buckets {
		xs[i] = (b.from + b.to) / 2
	}
	var said []string
	for _, cv := range curves {
		ys := make([]*float64, len(buckets))
		var peak *float64
		for i, b := range buckets {
			ys[i] = cv.value(b)
			peak = worst(peak, ys[i])
		}
		c.line(cv.class, xs, ys, x, y)
		c.Legend = append(c.Legend, legendItem{cv.class, cv.name})
		said = append(said, cv.name+" up to "+optional(peak))
	}
	c.faultWindows(&run.Report, x, bottom)
	c.stalls(buckets, x, bottom)
	c.Summary = title + " over " + number(end-start) + " s: " + joined(said)
	for _, b := range buckets {
		tip := []string{number(b.from) + " s"}
		if b.step != "" {
			tip[0] += ", " + b.step
		}
		for _, cv := range curves {
			tip = append(tip, cv.name+": "+optional(cv.value(b)))
		}
		if b.hiccup != nil {
			tip = append(tip, "longest stall: "+number(*b.hiccup)+" ms")
		}
		c.Hovers = append(c.Hovers, rect{x.at(b.from), marginTop, x.at(b.to) - x.at(b.from), bottom - marginTop + stripH, "hover", strings.Join(tip, "\n")})
	}
	return c
}

func timeTicks(start, end float64) []float64 {
	step := max(1, niceStep((end-start)/8))
	var ticks []float64
	for v := math.Ceil(start/step) * step; v <= end; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

// phases marks where a step begins and names it where its name fits.
func (c *chart) phases(buckets []bucket, x axis) {
	for i := 0; i < len(buckets); {
		j := i
		for j < len(buckets) && buckets[j].step == buckets[i].step {
			j++
		}
		a, b := x.at(buckets[i].from), x.at(buckets[j-1].to)
		if i > 0 {
			c.Grid = append(c.Grid, path{"phase", fmt.Sprintf("M%s %sV%s", px(a), px(marginTop-14), px(c.H-marginBottom-stripH))})
		}
		if name := buckets[i].step; float64(len([]rune(name)))*charWidth < b-a-6 {
			c.Labels = append(c.Labels, label{a + 4, marginTop - 8, "phase-name", "start", name})
		}
		i = j
	}
}

// faultWindows shades the time between a fault's injection and its end.
func (c *chart) faultWindows(r *result.Report, x axis, bottom float64) {
	shown := false
	for _, f := range r.Faults {
		if f.At == nil {
			continue
		}
		from := f.At.Sub(r.Started).Seconds()
		until := x.hi
		if f.Until != nil {
			until = f.Until.Sub(r.Started).Seconds()
		}
		from, until = max(from, x.lo), min(until, x.hi)
		if until <= from {
			continue
		}
		c.Shades = append(c.Shades, rect{x.at(from), marginTop, max(x.at(until)-x.at(from), 1), bottom - marginTop, "fault", f.ID})
		shown = true
	}
	if shown {
		c.Legend = append(c.Legend, legendItem{"fault", "fault injected"})
	}
}

// stalls draws the strip that tells the machine's own trouble from the gateway's.
func (c *chart) stalls(buckets []bucket, x axis, bottom float64) {
	measured, marked := false, false
	for _, b := range buckets {
		measured = measured || b.hiccup != nil || b.steal != nil
		if (b.hiccup != nil && *b.hiccup > stallMarkMS) || (b.steal != nil && *b.steal > stealMark) {
			c.Bars = append(c.Bars, rect{x.at(b.from), bottom + 2, max(x.at(b.to)-x.at(b.from)-0.5, 1), stripH - 2, "stall", ""})
			marked = true
		}
	}
	switch {
	case marked:
		c.Legend = append(c.Legend, legendItem{"stall", "machine stalled > 3 ms or > 2 % stolen"})
	case measured:
		c.Note = strings.TrimPrefix(c.Note+" The machine did not stall.", " ")
	}
}

// ladderCharts draws rate and latency against the offered rate, when there is a ladder.
func ladderCharts(r *result.Report) []chart {
	var rungs []result.Step
	for _, s := range r.Steps {
		if !s.Warmup {
			rungs = append(rungs, s)
		}
	}
	slices.SortStableFunc(rungs, func(a, b result.Step) int { return int(math.Copysign(1, a.TargetTPS-b.TargetTPS)) })
	if len(rungs) < 3 || rungs[0].TargetTPS == rungs[len(rungs)-1].TargetTPS {
		return nil
	}
	top := rungs[len(rungs)-1].TargetTPS
	left, right, bottom := marginLeft, plotW-marginRight, plotH-marginBottom
	x, xTicks := linear(top, left, right)

	tps := chart{Title: "Rates against the offered rate, TPS", W: plotW, H: plotH}
	y, yTicks := linear(top, bottom, marginTop)
	tps.frame(x, y, xTicks, yTicks, "target TPS")
	tps.Summary = "Rates against the offered rate at " + count(int64(len(rungs))) + " steps"
	tps.rungs(rungs, x, y, []rungCurve{
		{"s-muted", "offered", func(s result.Step) *float64 { return s.OfferedTPS }},
		{"s1", "accepted", func(s result.Step) *float64 { return s.AcceptedTPS }},
		{"s2", "full chain", func(s result.Step) *float64 { return s.FirstSubmit.TPS }},
		{"s3", "final fate", func(s result.Step) *float64 { return s.FinalTPS }},
	})
	if k := r.Knee; k != nil && k.SustainedTPS != nil {
		hi := x.hi
		if k.SaturatedTPS != nil {
			hi = *k.SaturatedTPS
		}
		from, to := x.at(min(*k.SustainedTPS, hi)), x.at(min(max(*k.SustainedTPS, hi), x.hi))
		tps.Shades = append(tps.Shades, rect{from, marginTop, max(to-from, 2), bottom - marginTop, "knee", "knee"})
		tps.Legend = append(tps.Legend, legendItem{"knee", "knee: sustained – saturated"})
	}

	curves := []rungCurve{
		{"q1", "P50", func(s result.Step) *float64 { return s.SubmitResp.P50 }},
		{"q2", "P95", func(s result.Step) *float64 { return s.SubmitResp.P95 }},
		{"q3", "P99", func(s result.Step) *float64 { return s.SubmitResp.P99 }},
	}
	lo, hi := math.Inf(1), 0.0
	for _, s := range rungs {
		for _, cv := range curves {
			if v := cv.value(s); v != nil {
				lo, hi = min(lo, *v), max(hi, *v)
			}
		}
	}
	if hi == 0 {
		return []chart{tps}
	}
	lat := chart{Title: "SUBMIT_RESP latency against the offered rate, ms (log scale)", W: plotW, H: plotH}
	y, yTicks = logarithmic(lo, hi, bottom, marginTop)
	lat.frame(x, y, xTicks, yTicks, "target TPS")
	lat.Summary = "SUBMIT_RESP percentiles against the offered rate, up to " + number(hi) + " ms"
	lat.rungs(rungs, x, y, curves)
	return []chart{tps, lat}
}

type rungCurve struct {
	class, name string
	value       func(result.Step) *float64
}

func (c *chart) rungs(rungs []result.Step, x, y axis, curves []rungCurve) {
	xs := make([]float64, len(rungs))
	for i, s := range rungs {
		xs[i] = s.TargetTPS
	}
	for _, cv := range curves {
		ys := make([]*float64, len(rungs))
		for i, s := range rungs {
			ys[i] = cv.value(s)
			if ys[i] != nil {
				c.Dots = append(c.Dots, dot{x.at(xs[i]), y.at(*ys[i]), 3.5, cv.class, fmt.Sprintf("%s at %s TPS: %s", cv.name, number(s.TargetTPS), number(*ys[i]))})
			}
		}
		c.line(cv.class, xs, ys, x, y)
		c.Legend = append(c.Legend, legendItem{cv.class, cv.name})
	}
}

// stageChart is the waterfall: each bar starts where the medians before it end.
func stageChart(r *result.Report) []chart {
	const rowH, labelW, valueW, top = 24.0, 118.0, 132.0, 8.0
	var hi, start float64
	for _, s := range r.Stages {
		if s.P95 != nil {
			hi = max(hi, start+*s.P95)
		}
		if s.P50 != nil {
			start += *s.P50
			hi = max(hi, start)
		}
	}
	if hi == 0 {
		return nil
	}
	c := chart{
		Title: "Stage waterfall, ms", Wide: true, W: 2 * plotW, H: top + rowH*float64(len(r.Stages)) + marginBottom,
		Note:    "A bar is the median of a stage and starts where the medians before it end; the thin line reaches its P95.",
		Summary: "Stages with median and P95 in milliseconds, one after another",
		Legend:  []legendItem{{"bar", "P50"}, {"whisker", "up to P95"}},
	}
	x, ticks := linear(hi, labelW, c.W-valueW)
	for _, v := range ticks {
		c.Grid = append(c.Grid, path{"grid", fmt.Sprintf("M%s %sV%s", px(x.at(v)), px(top), px(c.H-marginBottom))})
		c.Labels = append(c.Labels, label{x.at(v), c.H - 20, "tick", "middle", number(v)})
	}
	c.Labels = append(c.Labels, label{(x.from + x.to) / 2, c.H - 4, "tick", "middle", "milliseconds since the start, medians added up"})
	start = 0
	for i, s := range r.Stages {
		mid := top + rowH*(float64(i)+0.5)
		c.Labels = append(c.Labels,
			label{labelW - 8, mid + 4, "name", "end", strings.ReplaceAll(s.Name, "_", " ")},
			label{c.W - 4, mid + 4, "tick", "end", "P50 " + optional(s.P50) + " · P95 " + optional(s.P95)})
		if s.P95 != nil {
			c.Lines = append(c.Lines, path{"whisker", fmt.Sprintf("M%s %sH%s", px(x.at(start)), px(mid), px(x.at(start+*s.P95)))})
		}
		if s.P50 != nil {
			tip := fmt.Sprintf("%s: P50 %s, P95 %s, P99 %s ms (n=%s)", s.Name, optional(s.P50), optional(s.P95), optional(s.P99), count(s.N))
			c.Bars = append(c.Bars, rect{x.at(start), mid - 7, max(x.at(start+*s.P50)-x.at(start), 1.5), 14, "bar", tip})
			start += *s.P50
		}
	}
	return []chart{c}
}

// gateChart shows every run of both sides, never only means: one row a metric,
// scaled to the baseline's median.
func gateChart(r *result.Report) []chart {
	const rowH, labelW, top = 30.0, 180.0, 10.0
	hi := 0.0
	type scaled struct {
		name                string
		baseline, candidate []float64
	}
	var rows []scaled
	for _, g := range r.Gate {
		m := median(g.Baseline)
		if m <= 0 {
			continue
		}
		s := scaled{name: g.Metric}
		for _, v := range g.Baseline {
			s.baseline = append(s.baseline, v/m)
			hi = max(hi, v/m)
		}
		for _, v := range g.Candidate {
			s.candidate = append(s.candidate, v/m)
			hi = max(hi, v/m)
		}
		rows = append(rows, s)
	}
	if len(rows) == 0 {
		return nil
	}
	c := chart{
		Title: "Every run, as a multiple of the baseline's median", Wide: true, W: 2 * plotW, H: top + rowH*float64(len(rows)) + marginBottom,
		Summary: "One dot a run for each gated metric",
		Legend:  []legendItem{{"s-muted", "baseline"}, {"s2", "candidate"}},
	}
	x, ticks := linear(max(hi, 1), labelW, c.W-marginRight)
	for _, v := range ticks {
		c.Grid = append(c.Grid, path{"grid", fmt.Sprintf("M%s %sV%s", px(x.at(v)), px(top), px(c.H-marginBottom))})
		c.Labels = append(c.Labels, label{x.at(v), c.H - 20, "tick", "middle", number(v)})
	}
	for i, s := range rows {
		mid := top + rowH*(float64(i)+0.5)
		c.Labels = append(c.Labels, label{labelW - 8, mid + 4, "name", "end", s.name})
		for _, v := range s.baseline {
			c.Dots = append(c.Dots, dot{x.at(v), mid - 6, 4, "s-muted", "baseline " + number(v)})
		}
		for _, v := range s.candidate {
			c.Dots = append(c.Dots, dot{x.at(v), mid + 6, 4, "s2", "candidate " + number(v)})
		}
	}
	return []chart{c}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
