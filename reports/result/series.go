package result

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// Second is one row of series.csv: what happened in one second of the run.
// A nil percentile is an empty cell.
type Second struct {
	Second      int64  // since Report.Started
	Step        string // name of the step running then; empty between steps
	Offered     int64  // messages whose due time came
	Accepted    int64  // SUBMIT_RESP 0 received
	FirstSubmit int64  // first, non-resend SUBMITs at suppliers
	Final       int64  // messages that reached a final fate
	P50         *float64
	P95         *float64
	P99         *float64
	InFlight    int64    // outstanding at suppliers at the end of the second
	HiccupMS    *float64 // longest stall of the machine seen in this second
	Steal       *float64 // share of CPU time stolen by the host, 0..1
}

func seriesHeader() []string {
	return []string{
		"second", "step", "offered", "accepted", "first_submit", "final",
		"submit_resp_p50_ms", "submit_resp_p95_ms", "submit_resp_p99_ms",
		"in_flight", "hiccup_ms", "steal",
	}
}

// WriteSeries writes a header and one row per second. Numbers must be finite.
func WriteSeries(w io.Writer, rows []Second) error {
	c := csv.NewWriter(w)
	if err := c.Write(seriesHeader()); err != nil {
		return fmt.Errorf("write series: %w", err)
	}
	for _, r := range rows {
		for _, v := range []*float64{r.P50, r.P95, r.P99, r.HiccupMS, r.Steal} {
			if v != nil && !finite(*v) {
				return fmt.Errorf("write series: second %d: %w", r.Second, errNotFinite)
			}
		}
		if err := c.Write([]string{
			strconv.FormatInt(r.Second, 10), r.Step,
			strconv.FormatInt(r.Offered, 10), strconv.FormatInt(r.Accepted, 10),
			strconv.FormatInt(r.FirstSubmit, 10), strconv.FormatInt(r.Final, 10),
			cell(r.P50), cell(r.P95), cell(r.P99),
			strconv.FormatInt(r.InFlight, 10), cell(r.HiccupMS), cell(r.Steal),
		}); err != nil {
			return fmt.Errorf("write series: %w", err)
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("write series: %w", err)
	}
	return nil
}

// ReadSeries reads what [WriteSeries] wrote; an error names the line and column.
// Seconds must increase.
func ReadSeries(r io.Reader) ([]Second, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	names := seriesHeader()
	if !slices.Equal(head, names) {
		return nil, fmt.Errorf("read series: header is %q, want %q", head, names)
	}
	var rows []Second
	for {
		rec, err := c.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read series: %w", err)
		}
		row := Second{Step: rec[1]}
		for i, dst := range map[int]*int64{0: &row.Second, 2: &row.Offered, 3: &row.Accepted, 4: &row.FirstSubmit, 5: &row.Final, 9: &row.InFlight} {
			if *dst, err = strconv.ParseInt(rec[i], 10, 64); err != nil {
				line, _ := c.FieldPos(i)
				return nil, fmt.Errorf("read series: line %d, %s: %w", line, names[i], err)
			}
		}
		for i, dst := range map[int]**float64{6: &row.P50, 7: &row.P95, 8: &row.P99, 10: &row.HiccupMS, 11: &row.Steal} {
			if rec[i] == "" {
				continue
			}
			v, err := strconv.ParseFloat(rec[i], 64)
			if err == nil && !finite(v) {
				err = errNotFinite
			}
			if err != nil {
				line, _ := c.FieldPos(i)
				return nil, fmt.Errorf("read series: line %d, %s: %w", line, names[i], err)
			}
			*dst = &v
		}
		if n := len(rows); n > 0 && row.Second <= rows[n-1].Second {
			line, _ := c.FieldPos(0)
			return nil, fmt.Errorf("read series: line %d: second %d after second %d", line, row.Second, rows[n-1].Second)
		}
		rows = append(rows, row)
	}
}

var errNotFinite = errors.New("not a finite number")

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func cell(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
