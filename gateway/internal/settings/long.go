package settings

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
)

// Cutting is how long messages are cut for a channel.
type Cutting struct {
	LongFmt   *sms.Fmt `db:"-"` // Msg_Fmt of texts; nil = the customer's
	LongRef16 bool     `db:"-"` // 16-bit references: headers of 7 octets
}

// loadCutting reads how long messages are cut for the channels.
func (s *Snapshot) loadCutting(ctx context.Context, tx pgx.Tx) error {
	r, err := tx.Query(ctx, store.SettingsCutting)
	if err != nil {
		return fmt.Errorf("long messages of channels: %w", err)
	}
	var id int32
	var format int16
	var wide bool
	_, err = pgx.ForEachRow(r, []any{&id, &format, &wide}, func() error {
		c := s.Channels[id]
		if c == nil {
			return nil
		}
		c.LongRef16 = wide
		if format >= 0 {
			f := sms.Fmt(format)
			c.LongFmt = &f
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("long messages of channels: %w", err)
	}
	return nil
}

// Cut cuts a whole message for the channel; msgID is the customer's, of which the reference is made. It completes l, from
// which the same parts can be made again. c nil is a channel without a wish. Errors are those of sms.Long.Parts.
func (c *Channel) Cut(l *sms.Long, msgID int64) (parts [][]byte, udhi bool, err error) {
	var wish *sms.Fmt
	l.Ref = uint32(msgID) & (1<<8 - 1)
	if c != nil {
		if wish = c.LongFmt; c.LongRef16 {
			l.Ref = sms.Ref16 | uint32(msgID)&(1<<16-1)
		}
	}
	_, payload, err := l.Payload()
	if err != nil {
		return nil, false, err
	}
	if l.OutFmt, err = sms.OutFmt(l.Fmt, payload, wish); err != nil {
		return nil, false, err
	}
	return l.Parts()
}
