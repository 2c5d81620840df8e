package enquiry

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// question is a QUERY of an application.
type question struct {
	app     int32
	day     string // YYYYMMDD
	service string // "" = all
}

type counted struct {
	at   time.Time
	resp cmpp.QueryResp
}

const (
	countFresh = 30 * time.Second // a count is given again for so long
	countMost  = 10 * time.Second // PostgreSQL may count for so long
	countsMost = 1024             // counts that are kept
)

// Query counts a day's traffic of an application. A time that is no day, or a type other than 0 and 1, has no traffic.
func (e *Enquiry) Query(ctx context.Context, app int32, q *cmpp.Query) (*cmpp.QueryResp, error) {
	resp := &cmpp.QueryResp{Time: q.Time, QueryType: q.QueryType, QueryCode: q.QueryCode}
	day, err := time.ParseInLocation("20060102", q.Time, cmpp.Shanghai)
	if err != nil || q.QueryType > 1 || day.Year() < 2024 { // before the first id
		return resp, nil
	}
	ask := question{app: app, day: q.Time}
	if q.QueryType == 1 {
		ask.service = q.QueryCode
	}
	now := time.Now()
	e.mu.Lock()
	known, ok := e.counts[ask]
	e.mu.Unlock()
	if ok && now.Sub(known.at) < countFresh {
		known.resp.QueryType, known.resp.QueryCode = q.QueryType, q.QueryCode
		return &known.resp, nil
	}
	if err := e.count(ctx, resp, ask, q.QueryType == 1, day, now); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.counts) >= countsMost {
		clear(e.counts)
	}
	e.counts[ask] = counted{now, *resp}
	return resp, nil
}

func (e *Enquiry) count(ctx context.Context, r *cmpp.QueryResp, ask question, byService bool, day, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, countMost)
	defer cancel()
	end := day.AddDate(0, 0, 1)
	today := !now.Before(day) && now.Before(end)
	return store.InTx(ctx, e.Pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, store.EnquiryCount, ask.app, message.FirstID(day), message.FirstID(end)-1, byService, []byte(ask.service), today).Scan(
			&r.MTTLMsg, &r.MTTLUsr, &r.MTScs, &r.MTWT, &r.MTFL, &r.MOScs, &r.MOWT, &r.MOFL)
	})
}
