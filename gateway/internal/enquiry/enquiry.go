package enquiry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/segment"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// Options of an Enquiry; all fields are required.
type Options struct {
	Pool     *pgxpool.Pool
	IDs      *message.IDs
	Settings interface{ Current() *settings.Snapshot }
	Wake     settlement.Waker
}

// Enquiry answers customers. Safe for concurrent use.
type Enquiry struct {
	Options

	mu     sync.Mutex
	counts map[question]counted
}

// New makes an Enquiry.
func New(o Options) *Enquiry {
	return &Enquiry{Options: o, counts: map[question]counted{}}
}

// idSkew is how far the time of a Msg_Id may be from those of the rows it is about.
const idSkew = 10 * time.Minute

// lowest is the lowest message id that a Msg_Id of the last months can be about: a Msg_Id names no year.
func lowest(id cmpp.MsgID, now time.Time) int64 {
	month, day, hour, minute, second, _, _ := id.Fields()
	at := time.Date(now.In(cmpp.Shanghai).Year(), time.Month(month), day, hour, minute, second, 0, cmpp.Shanghai)
	if at.After(now.Add(24 * time.Hour)) {
		at = at.AddDate(-1, 0, 0)
	}
	return message.FirstID(at.Add(-idSkew))
}

var errStays = errors.New("it cannot be taken back")

// Cancel takes a SUBMIT back, by the Msg_Id of its SUBMIT_RESP; ok says that nothing of it was or will be sent. An error
// means that it is not known; ask again.
func (e *Enquiry) Cancel(ctx context.Context, enterprise, app int32, id cmpp.MsgID) (ok bool, err error) {
	var done *settlement.Outcome
	err = store.Retry(ctx, e.Pool, func(tx pgx.Tx) error {
		done = nil
		if _, err := tx.Exec(ctx, store.EnquiryLock, enterprise); err != nil {
			return err
		}
		found, err := waiting(ctx, tx, enterprise, app, int64(id))
		if err != nil || found {
			return err
		}
		list, err := messages(ctx, tx, app, int64(id), lowest(id, time.Now()))
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return errStays
		}
		outcome, ok, err := settlement.Cancel(ctx, tx, e.IDs, e.Settings.Current(), list)
		if err == nil && !ok {
			return errStays
		}
		done = outcome
		return err
	})
	switch {
	case errors.Is(err, errStays):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cancel: %w", err)
	case done != nil:
		done.Announce(ctx, nil, e.Wake) // it gives no commands
	default:
		e.Wake.Publish(wake.Inbox)
	}
	return true, nil
}

// place is a row that waits before the workflow.
type place struct {
	id, set            int64 // set: segment_wait alone
	udhi               int16
	ends               message.State
	long               bool // joined already
	dest, src, content []byte
	ofThisMsgID        bool
}

func (p *place) key(app int32) (segment.Key, bool) {
	if p.long {
		return segment.Key{}, false
	}
	k, _, _, ok := segment.KeyOf(app, string(p.dest), string(p.src), uint8(p.udhi), p.content)
	return k, ok
}

func places(ctx context.Context, tx pgx.Tx, statement string, args ...any) ([]place, error) {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p place, err error) {
		err = row.Scan(&p.id, &p.set, &p.udhi, &p.ends, &p.long, &p.dest, &p.src, &p.content, &p.ofThisMsgID)
		return p, err
	})
}

// waiting marks a SUBMIT that has not become a message, with everything that belongs to its message, as cancelled.
func waiting(ctx context.Context, tx pgx.Tx, enterprise, app int32, msgID int64) (found bool, err error) {
	inbox, err := places(ctx, tx, store.EnquiryInbox, enterprise, app, msgID)
	if err != nil {
		return false, err
	}
	segments, err := places(ctx, tx, store.EnquirySegments, app, msgID)
	if err != nil {
		return false, err
	}
	var key *segment.Key
	set := int64(0)
	for _, list := range [][]place{inbox, segments} {
		for i := range list {
			p := &list[i]
			if !p.ofThisMsgID {
				continue
			}
			if p.ends != 0 && p.ends != message.Cancelled {
				return false, errStays
			}
			found, set = true, p.set
			if k, ok := p.key(app); ok {
				key = &k
			}
		}
	}
	if !found {
		tag, err := tx.Exec(ctx, store.EnquiryScheduled, app, msgID)
		return err == nil && tag.RowsAffected() > 0, err
	}
	var marked, moved []int64
	for i := range inbox {
		p := &inbox[i]
		k, ok := p.key(app)
		if p.ends == 0 && (p.ofThisMsgID || key != nil && ok && k == *key) {
			marked = append(marked, p.id)
		}
	}
	for i := range segments {
		p := &segments[i]
		k, ok := p.key(app)
		if key != nil && ok && k == *key && (set == 0 || p.set == set) {
			moved = append(moved, p.id)
		}
	}
	if _, err := tx.Exec(ctx, store.EnquiryMark, marked); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, store.EnquiryUnset, moved)
	return true, err
}

// messages are those that a SUBMIT became: one for each recipient.
func messages(ctx context.Context, tx pgx.Tx, app int32, msgID, lowest int64) ([]int64, error) {
	rows, err := tx.Query(ctx, store.EnquiryMessages, app, msgID, lowest)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
