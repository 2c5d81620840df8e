package review

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// submits are the columns of review_submit.sql.
type submits struct {
	id, message         []int64
	channel, enterprise []int32
	lane                []message.Lane
	part, parts         []int16
}

func (s *submits) add(id int64, h *held, channel int32, part int16) {
	s.id, s.message, s.channel = append(s.id, id), append(s.message, h.id), append(s.channel, channel)
	s.enterprise, s.lane = append(s.enterprise, h.enterprise), append(s.lane, h.lane)
	s.part, s.parts = append(s.part, part), append(s.parts, max(h.parts, 1))
}

func (s *submits) queue(q *pgx.Batch) {
	if len(s.id) > 0 {
		q.Queue(store.ReviewSubmit, s.id, s.message, s.channel, s.enterprise, s.lane, s.part, s.parts)
	}
}

// deliveries are the columns of settlement_delivery.sql.
type deliveries struct {
	id, message, msgID, session []int64
	acceptedAt, doneAt          []time.Time
	app                         []int32
	node                        []int16
	stat                        []string
	dest, src, service          [][]byte
}

func (d *deliveries) add(id int64, h *held, p *store.Segment, stat string, now time.Time) {
	d.id, d.message, d.msgID, d.session = append(d.id, id), append(d.message, h.id), append(d.msgID, p.MsgID), append(d.session, p.Session)
	d.acceptedAt, d.doneAt, d.app, d.node = append(d.acceptedAt, p.AcceptedAt), append(d.doneAt, now), append(d.app, h.app), append(d.node, p.Node)
	d.stat, d.dest, d.src, d.service = append(d.stat, stat), append(d.dest, h.dest), append(d.src, h.src), append(d.service, h.service)
}

func (d *deliveries) queue(q *pgx.Batch) {
	if len(d.id) > 0 {
		q.Queue(store.SettlementDelivery, d.id, d.message, d.msgID, d.session, d.acceptedAt, d.app, d.node, d.stat, d.doneAt, d.dest, d.src, d.service)
	}
}

// use is one counter of daily_use.
type use struct {
	enterprise, app int32
	day             string
}

func queueUses(q *pgx.Batch, uses map[use]int64) {
	if len(uses) == 0 {
		return
	}
	var enterprises, apps []int32
	var days []string
	var counts []int64
	for _, u := range slices.SortedFunc(maps.Keys(uses), func(x, y use) int {
		return cmp.Or(cmp.Compare(x.enterprise, y.enterprise), cmp.Compare(x.day, y.day), cmp.Compare(x.app, y.app))
	}) {
		enterprises, apps, days, counts = append(enterprises, u.enterprise), append(apps, u.app), append(days, u.day), append(counts, uses[u])
	}
	q.Queue(store.ReviewUse, enterprises, apps, days, counts)
}

// Held is a message in review, for whoever decides.
type Held struct {
	MessageID  int64
	Enterprise int32
	App        int32
	Keyword    int32
	Word       string // "" = the keyword was deleted
	HeldAt     time.Time
	ExpiresAt  time.Time
	Phone      int64
	Units      int32
	Price      int64 // 1/10,000 yuan a unit
	Signature  string
	Fmt        int16
	UDHI       int16
	Content    []byte // Msg_Content as stored
}

// List is at most limit messages of an enterprise (0 = of all) in review behind the message after, oldest first.
func (r *Review) List(ctx context.Context, enterprise int32, after int64, limit int) ([]Held, error) {
	rows, err := r.Pool.Query(ctx, store.ReviewList, enterprise, after, limit, int64(0), message.FirstID(time.Now().Add(time.Hour)))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Held])
}
