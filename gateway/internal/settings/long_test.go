package settings_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
	"cmppgateway/testenv"
)

func TestChannelsCutLongMessages(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), `INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES (1, 8, 64, '127.0.0.1:1', '9', 's', 's');
		INSERT INTO channel (id, account_id, access_number, name, long_fmt, long_ref16) VALUES (1, 1, '1', 'a', -1, false), (2, 1, '1', 'b', 15, true)`); err != nil {
		t.Fatal(err)
	}
	w := settings.NewWatcher(pool, time.Hour, slog.New(slog.DiscardHandler))
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := sms.EncodeText(sms.FmtUCS2, "中文")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int32]sms.Long{1: {OutFmt: sms.FmtUCS2, Ref: 0x34}, 2: {OutFmt: sms.FmtGB18030, Ref: sms.Ref16 | 0x1234}, 3: {OutFmt: sms.FmtUCS2, Ref: 0x34}} {
		l := sms.Long{Fmt: sms.FmtUCS2, Content: text}
		parts, udhi, err := w.Current().Channels[id].Cut(&l, 0x7712_1234)
		if err != nil || len(parts) != 1 || udhi || l.OutFmt != want.OutFmt || l.Ref != want.Ref {
			t.Errorf("channel %d: %d parts, %+v, %v", id, len(parts), l, err)
		}
	}
}
