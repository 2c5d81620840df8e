package runner

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"cmppgateway/reports/result"
)

// metrics is one reading of the gateway's metrics.
type metrics map[string]*dto.MetricFamily

// maxMetrics bounds an answer of /metrics.
const maxMetrics = 16 << 20

func scrape(ctx context.Context, client *http.Client, url string) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer resp.Body.Close()
	return parseMetrics(io.LimitReader(resp.Body, maxMetrics))
}

func parseMetrics(r io.Reader) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	m, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return m, nil
}

// matches says whether a metric has the labels, given as name, value, ….
func matches(m *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		if !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
			return l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}) {
			return false
		}
	}
	return true
}

// sum adds the counters and gauges of a name over all its labels but those given.
func (m metrics) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, x := range m[name].GetMetric() {
		if matches(x, labels) {
			total += x.GetCounter().GetValue() + x.GetGauge().GetValue()
		}
	}
	return total
}

// histogram is the difference of two readings of a histogram: counts per bucket
// (not cumulative) with their upper bounds.
type histogram struct {
	bounds []float64
	counts []float64
	n, sum float64
}

// between is what a histogram counted between two readings, added up over all its
// labels but those given.
func between(before, after metrics, name string, labels ...string) histogram {
	cumulative := map[float64]float64{}
	h := histogram{}
	add := func(m metrics, sign float64) {
		for _, x := range m[name].GetMetric() {
			if x.GetHistogram() == nil || !matches(x, labels) {
				continue
			}
			h.n += sign * float64(x.GetHistogram().GetSampleCount())
			h.sum += sign * x.GetHistogram().GetSampleSum()
			infinite := false
			for _, b := range x.GetHistogram().GetBucket() {
				cumulative[b.GetUpperBound()] += sign * float64(b.GetCumulativeCount())
				infinite = infinite || math.IsInf(b.GetUpperBound(), 1)
			}
			if !infinite {
				cumulative[math.Inf(1)] += sign * float64(x.GetHistogram().GetSampleCount())
			}
		}
	}
	add(after, 1)
	add(before, -1)
	for bound := range cumulative {
		h.bounds = append(h.bounds, bound)
	}
	slices.Sort(h.bounds)
	last := 0.0
	for _, bound := range h.bounds {
		h.counts = append(h.counts, cumulative[bound]-last)
		last = cumulative[bound]
	}
	return h
}

// quantile interpolates within the bucket that q falls in; above the last finite
// bound it is that bound. ok is false without samples.
func (h histogram) quantile(q float64) (v float64, ok bool) {
	if h.n <= 0 {
		return 0, false
	}
	rank, seen, low := q*h.n, 0.0, 0.0
	for i, bound := range h.bounds {
		if seen+h.counts[i] >= rank && h.counts[i] > 0 {
			if math.IsInf(bound, 1) {
				return low, true
			}
			return low + (bound-low)*(rank-seen)/h.counts[i], true
		}
		seen += h.counts[i]
		if !math.IsInf(bound, 1) {
			low = bound
		}
	}
	return low, true
}

// largest is the upper bound of the highest bucket with a count.
func (h histogram) largest() float64 {
	most, low := 0.0, 0.0
	for i, bound := range h.bounds {
		if !math.IsInf(bound, 1) {
			low = bound
		}
		if h.counts[i] > 0 {
			most = low
		}
	}
	return most
}

func (h histogram) mean() float64 {
	if h.n <= 0 {
		return 0
	}
	return h.sum / h.n
}

// latency turns a histogram in seconds into milliseconds for the report.
func (h histogram) latency(missing string) result.Latency {
	if h.n <= 0 {
		return result.Latency{Reason: missing}
	}
	ms := func(q float64) float64 {
		v, _ := h.quantile(q)
		return 1000 * v
	}
	return result.NewLatency(int64(h.n), ms(0.5), ms(0.95), ms(0.99))
}
