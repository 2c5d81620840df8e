package settlement_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/event"
)

const (
	bulkMessageSQL = `INSERT INTO message (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, created_at, valid_until, enterprise_id, app_id, channel_id,
	units, price_version, state, bill, charge_on, refund_on, carrier, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
	SELECT i, i, 1, 325, 13800000000, 1, now(), now(), now() + interval '1 h', 1, 11, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, '13800000000', '1069', '', repeat('x', 70)::bytea
	FROM unnest($1::bigint[]) i`
	bulkOutboxSQL = `INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane, state, node, batch, at)
	SELECT i, i, m, 1, 1, 1, 1, 1, 1, 1, 1, 1, now() FROM unnest($1::bigint[], $2::bigint[]) u(i, m)`
	bulkReceiptSQL = `INSERT INTO receipt (event_id, seq, supplier_msg_id, phone, at, supplier_account, channel_id, shard, stat, submit_time, done_time, src)
	SELECT i, i, m, 13800000000, now(), 1, 1, $3, 'DELIVRD', '2611300000', '2611300000', '1069' FROM unnest($1::bigint[], $2::bigint[]) u(i, m)`
	batch = 50
)

// bulk makes n dispatched messages and the results that accept them, one in twenty being refused for good when mixed.
func (b *bench) bulk(tb testing.TB, n int, mixed bool) []event.SubmitResult {
	tb.Helper()
	results := make([]event.SubmitResult, 0, n)
	for len(results) < n {
		some := min(n-len(results), 5000)
		messages, err := b.node.IDs.Take(tb.Context(), some)
		if err != nil {
			tb.Fatal(err)
		}
		submits, err := b.node.IDs.Take(tb.Context(), some)
		if err != nil {
			tb.Fatal(err)
		}
		b.exec(tb, bulkMessageSQL, messages)
		b.exec(tb, bulkOutboxSQL, submits, messages)
		for i := range submits {
			m := sent{message: messages[i], submit: submits[i], phone: 13800000000, channel: 1, attempt: 1}
			r := b.result(m, event.Accepted, 0, uint64(m.submit))
			if mixed && i%20 == 0 {
				r = b.result(m, event.Rejected, 13, 0)
			}
			results = append(results, r)
		}
	}
	return results
}

func perSecond(b *testing.B, n int, begin time.Time) {
	b.Helper()
	b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "events/s")
}

// BenchmarkResults applies results in batches of 50, one transaction after another; an operation is one result.
func BenchmarkResults(b *testing.B) {
	for name, mixed := range map[string]bool{"accepted": false, "mixed": true} {
		b.Run(name, func(b *testing.B) {
			bench := setup(b)
			results := bench.bulk(b, b.N, mixed)
			b.ResetTimer()
			begin := time.Now()
			for from := 0; from < len(results); from += batch {
				bench.apply(b, results[from:min(from+batch, len(results))]...)
			}
			perSecond(b, b.N, begin)
		})
	}
}

// BenchmarkReceipts settles receipts of accepted submits; an operation is one receipt.
func BenchmarkReceipts(b *testing.B) {
	bench := setup(b)
	results := bench.bulk(b, b.N, false)
	for from := 0; from < len(results); from += 500 {
		chunk := results[from:min(from+500, len(results))]
		bench.apply(b, chunk...)
		msgIDs := make([]int64, len(chunk))
		for i := range chunk {
			msgIDs[i] = int64(chunk[i].SupplierMsgID)
		}
		events, err := bench.node.IDs.Take(b.Context(), len(chunk))
		if err != nil {
			b.Fatal(err)
		}
		bench.exec(b, bulkReceiptSQL, events, msgIDs, bench.node.Number)
	}
	b.ResetTimer()
	begin := time.Now()
	bench.settle(b)
	perSecond(b, b.N, begin)
}
