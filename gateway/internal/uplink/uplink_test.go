package uplink_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/uplink"
	"cmppgateway/gateway/sms"
)

const phone, phoneText = 13800000001, "13800000001"

func TestUplinkReachesItsCustomerOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.wrote(t, 11, phone, "106900011155", "北方", time.Hour)
	b.run(t)
	first := said(7, "8613800000001", "106900011155", "好的")
	ids := b.arrive(t, first)
	b.settled(t)
	b.offer(t, ids, []sent{first}) // the edge offers its event again
	b.arrive(t, first)             // the supplier repeats its DELIVER
	other := first
	other.content = append(slices.Clone(first.content), first.content...)
	b.arrive(t, other) // not the same, whatever its Msg_Id says
	b.settled(t)
	list := b.got(t, phoneText)
	if len(list) != 2 || b.count(t, "SELECT count(*) FROM uplink") != 2 {
		t.Fatalf("%d deliveries: %+v", len(list), list)
	}
	if g := list[0]; g.App != 11 || g.Src != "106900011155" || g.Service != "SVC" || g.Fmt != 8 || g.UDHI != 0 || g.text(t) != "好的" || list[1].text(t) != "好的好的" {
		t.Errorf("delivered %+v", list)
	}
	if n := b.outcomes(t, uplink.Delivered); n != 2 {
		t.Errorf("%d delivered", n)
	}
	if n := b.count(t, "SELECT count(*) FROM opt_out"); n != 0 {
		t.Errorf("%d opt-outs", n)
	}
}

const longText = "尊敬的客服，我上周二在你们店里买的那台机器到今天还没有送到，电话也没有人接。请你们尽快查一下是哪里出了问题，如果明天还送不到我就要退款了。" +
	"订单号是 2026112800017，收货地址没有变。另外上次买的那台也有点毛病，开机的时候声音很大，希望送货的师傅能一起看看。谢谢！😀"

func TestLongUplinkIsJoined(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run(t)
	random := rand.New(rand.NewPCG(1, 2))
	var phones []string
	for i := range 12 {
		from := fmt.Sprintf("139%08d", i)
		phones = append(phones, from)
		list := segments(t, uint64(1000*(i+1)), from, "1069000122", longText, uint16(i*300), i%2 == 1)
		again := list[random.IntN(len(list))]
		again.msgID += 500 // a repetition that the key does not see
		list = append(list, again)
		random.Shuffle(len(list), func(x, y int) { list[x], list[y] = list[y], list[x] })
		if i%3 == 0 {
			b.arrive(t, list...)
			continue
		}
		for _, s := range list {
			b.arrive(t, s)
			if i%3 == 1 {
				b.settled(t)
			}
		}
	}
	eventually(t, "all are joined", func() bool { return b.outcomes(t, uplink.Joined) == 3*len(phones) })
	b.settled(t)
	for i, from := range phones {
		list := b.got(t, from)
		if text := b.said(t, from); text != longText || len(list) != 3 {
			t.Errorf("%s: %d DELIVERs, %q", from, len(list), text)
			continue
		}
		for k, g := range list {
			c, ok, _, _, err := sms.SplitHeader(g.Content)
			if err != nil || !ok || int(c.Number) != k+1 || c.Total != 3 || c.Wide != (i%2 == 1) || g.App != 12 || len(g.Content) > 140 {
				t.Errorf("%s: segment %d is %+v (%v), application %d, %d octets", from, k+1, c, err, g.App, len(g.Content))
			}
		}
	}
	// A repetition that came when its message was gone waits, for it might be a text that reads the same there.
	doubtful := b.count(t, "SELECT count(*) FROM uplink_segment WHERE NOT sent AND repeats <> 0")
	if n, all := b.outcomes(t, uplink.Repeated), b.count(t, "SELECT count(*) FROM uplink"); n+doubtful != 12 || all != 48 {
		t.Errorf("%d repetitions and %d that may be some, of %d", n, doubtful, all)
	}
	b.exec(t, "UPDATE uplink_segment SET due_at = now(), since = now() - interval '1 hour'")
	eventually(t, "repetitions end", func() bool { return b.outcomes(t, uplink.Repeated) == 12 })
	b.exec(t, "UPDATE uplink_segment SET due_at = now()")
	eventually(t, "and are forgotten", func() bool { return b.count(t, "SELECT count(*) FROM uplink_segment") == 0 })
	if n := b.count(t, "SELECT count(*) FROM delivery"); n != 3*len(phones) {
		t.Errorf("%d deliveries", n)
	}
}

// A whole text that two segments held although one is enough, and content that is no text.
func TestLongUplinkThatIsShortOrNoText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run(t)
	part := func(msgID uint64, from string, f int16, number uint8, payload string) sent {
		return sent{msgID: msgID, phone: from, dest: "1069000111", fmt: f, udhi: 0x40, content: append(sms.Concat{Ref: 9, Total: 2, Number: number}.Append(nil), payload...)}
	}
	b.arrive(t, part(1, "13900000001", 0, 2, "world"), part(2, "13900000001", 0, 1, "hello "))
	b.arrive(t, part(3, "13900000002", 4, 1, "\x00\xff"), part(4, "13900000002", 4, 2, "\x01"))
	b.arrive(t, part(5, "13900000003", 245, 2, "b"), part(6, "13900000003", 245, 1, "a"))
	eventually(t, "all are joined", func() bool { return b.outcomes(t, uplink.Joined) == 6 })
	if list := b.got(t, "13900000001"); len(list) != 1 || list[0].UDHI != 0 || list[0].text(t) != "hello world" {
		t.Errorf("short: %+v", list)
	}
	if list := b.got(t, "13900000002"); len(list) != 1 || list[0].Fmt != 4 || !bytes.Equal(list[0].Content, []byte{0, 255, 1}) {
		t.Errorf("binary: %+v", list)
	}
	list := b.got(t, "13900000003")
	if len(list) != 2 || list[0].UDHI != 1 || !strings.HasSuffix(string(list[0].Content), "a") || !strings.HasSuffix(string(list[1].Content), "b") {
		t.Errorf("a format that is none: %+v", list)
	}
}

func TestIncompleteUplinkGoesOnMarked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.SegmentExpiry, b.cfg.SegmentDoubt = 10*time.Millisecond, 5*time.Millisecond
	list := segments(t, 1, phoneText, "1069000111", longText, 7, false)
	b.arrive(t, list[2], list[0])
	b.run(t)
	eventually(t, "what came is delivered", func() bool { return b.outcomes(t, uplink.Incomplete) == 2 })
	whole := []rune(longText)
	want := string(whole[:67]) + "[缺2/3]" + string(whole[134:])
	if text := b.said(t, phoneText); text != want {
		t.Errorf("delivered %q, want %q", text, want)
	}
	b.arrive(t, list[1]) // too late: it goes on by itself
	eventually(t, "the late one is delivered", func() bool { return b.outcomes(t, uplink.Incomplete) == 3 })
	if text := b.said(t, phoneText); text != want+"[缺1/3]"+string(whole[67:134])+"[缺3/3]" {
		t.Errorf("delivered %q", text)
	}
	if n := b.count(t, "SELECT count(*) FROM uplink_segment"); n != 0 {
		t.Errorf("%d segments are kept", n)
	}
}

func TestTooManySegmentsGoOnOneByOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.SegmentsMax = 1
	list := segments(t, 1, phoneText, "1069000111", longText, 7, false)
	b.arrive(t, list...)
	b.run(t)
	b.settled(t)
	if n := b.outcomes(t, uplink.Delivered); n != 2 {
		t.Errorf("%d went on as they came, want those beyond the first", n)
	}
}

func TestNobodysUplinks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run(t)
	ids := b.arrive(t, said(1, "13900000001", "12345", "退订"), said(2, "13900000002", "1069000199", "喂"), said(3, "13900000003", "12399", "x"))
	b.settled(t)
	list, err := uplink.List(t.Context(), b.Pool, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 || list[0].EventID != ids[0] || list[0].Reason != uplink.NoApplication || !list[0].OptOut || list[0].Text() != "退订" ||
		list[1].Reason != uplink.Ambiguous || list[1].OptOut || list[1].Phone != "13900000002" || list[1].Dest != "1069000199" {
		t.Fatalf("list %+v", list)
	}
	if n := b.count(t, "SELECT count(*) FROM delivery") + b.count(t, "SELECT count(*) FROM opt_out"); n != 0 {
		t.Errorf("%d deliveries and opt-outs", n)
	}
	b.exec(t, "UPDATE application SET access_number = '12345' WHERE id = 13")
	b.refresh(t)
	if n, err := uplink.Rematch(t.Context(), b.Pool, ids[:2]); n != 2 || err != nil {
		t.Fatalf("%d matched again: %v", n, err)
	}
	if n, err := uplink.Discard(t.Context(), b.Pool, ids[2:]); n != 1 || err != nil {
		t.Fatalf("%d discarded: %v", n, err)
	}
	b.settled(t)
	if g := b.got(t, "13900000001"); len(g) != 1 || g[0].App != 13 || g[0].Src != "12345" {
		t.Errorf("delivered %+v", g)
	}
	if n := b.count(t, "SELECT count(*) FROM opt_out WHERE phone = 13900000001 AND enterprise_id = 2 AND uplink_event_id = $1", ids[0]); n != 1 {
		t.Error("the opt-out did not follow")
	}
	if list, err = uplink.List(t.Context(), b.Pool, 0, 10); err != nil || len(list) != 1 || list[0].EventID != ids[1] {
		t.Errorf("list %+v, %v", list, err)
	}
	if n := b.outcomes(t, uplink.Discarded); n != 1 {
		t.Errorf("%d discarded", n)
	}
	if n, err := uplink.Rematch(t.Context(), b.Pool, ids[2:]); n != 0 || err != nil {
		t.Errorf("%d matched again: %v", n, err)
	}
	b.wrote(t, 12, 13900000002, "1069000199", "", time.Minute)
	if n, err := uplink.RematchAll(t.Context(), b.Pool); n != 1 || err != nil {
		t.Errorf("%d matched again: %v", n, err)
	}
	b.settled(t)
	if g := b.got(t, "13900000002"); len(g) != 1 || g[0].App != 12 {
		t.Errorf("delivered %+v", g)
	}
}

// One transaction at a time works, in all processes: two that each saw a part of a set would never see it whole.
func TestOneWorksAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var locked bool
	if err := tx.QueryRow(t.Context(), "SELECT pg_try_advisory_xact_lock(10, 8)").Scan(&locked); err != nil || !locked {
		t.Fatal(locked, err)
	}
	b.run(t)
	b.arrive(t, said(1, phoneText, "1069000111", "a"))
	for range 10 { // a while in which it could go wrong
		if b.count(t, "SELECT count(*) FROM uplink_queue") != 1 {
			t.Fatal("worked on beside another transaction")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.settled(t)
	if n := len(b.got(t, phoneText)); n != 1 {
		t.Errorf("%d deliveries", n)
	}
}

// An uplink that fails for good does not hold up its neighbours, and nothing of it is lost.
func TestAnUplinkThatCannotBeWorkedOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.dest IN ('13900000002', '13900000009') THEN RAISE 'no' USING ERRCODE = '22023'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON delivery FOR EACH ROW EXECUTE FUNCTION refuse()`)
	b.cfg.SegmentExpiry, b.cfg.SegmentDoubt = 10*time.Millisecond, 5*time.Millisecond
	bad := segments(t, 50, "13900000009", "1069000111", longText, 1, false)[:2]
	ids := b.arrive(t, append(bad, said(1, "13900000001", "1069000111", "a"), said(2, "13900000002", "1069000111", "b"), said(3, "13900000003", "1069000111", "c"))...)
	b.run(t)
	eventually(t, "all have an end", func() bool { return b.outcomes(t, uplink.Waits) == 0 })
	if len(b.got(t, "13900000001")) != 1 || len(b.got(t, "13900000003")) != 1 {
		t.Error("the neighbours were not delivered once")
	}
	list, err := uplink.List(t.Context(), b.Pool, 0, 10)
	if err != nil || len(list) != 3 || list[0].Reason != uplink.Failed {
		t.Fatalf("list %+v, %v", list, err)
	}
	b.exec(t, "DROP TRIGGER refuse ON delivery")
	if n, err := uplink.Rematch(t.Context(), b.Pool, ids); n != 3 || err != nil {
		t.Fatalf("%d matched again: %v", n, err)
	}
	eventually(t, "they are delivered", func() bool { return len(b.got(t, "13900000002")) == 1 && b.outcomes(t, uplink.Incomplete) == 2 })
	if n := b.count(t, "SELECT count(*) FROM uplink_segment") + b.count(t, "SELECT count(*) FROM uplink_unmatched"); n != 0 {
		t.Errorf("%d left", n)
	}
}

var cutText = string([]rune(longText)[:100])

// Two processes work, and their connections are cut again and again: each uplink is delivered once, whole.
func TestCutAnywhereDeliversOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.BatchMax = 7
	var list []sent
	const n = 60
	for i := range n {
		list = append(list, said(uint64(i+1), fmt.Sprintf("139%08d", i), "1069000111", "退订"))
		list = append(list, segments(t, uint64(1000+10*i), fmt.Sprintf("138%08d", i), "1069000122", cutText, uint16(i), i%2 == 0)...)
	}
	pools := make([]*pgxpool.Pool, 2)
	for i := range pools {
		cfg := b.Config().Copy()
		cfg.ConnConfig.RuntimeParams["application_name"] = "worker"
		var err error
		if pools[i], err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pools[i].Close)
		b.runOn(t, pools[i], prometheus.NewRegistry())
	}
	for chunk := range slices.Chunk(list, 5) {
		b.arrive(t, chunk...)
		for range 5 { // as it happens, before, within or behind a transaction
			b.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'worker' AND datname = current_database() AND state <> 'idle'`)
		}
	}
	eventually(t, "all have an end", func() bool { return b.outcomes(t, uplink.Waits) == 0 })
	for i := range n {
		if got := b.got(t, fmt.Sprintf("139%08d", i)); len(got) != 1 || got[0].text(t) != "退订" {
			t.Errorf("%d single: %+v", i, got)
		}
		if text := b.said(t, fmt.Sprintf("138%08d", i)); text != cutText {
			t.Errorf("%d long: %q", i, text)
		}
	}
	if k := b.count(t, "SELECT count(*) FROM opt_out"); k != n {
		t.Errorf("%d opt-outs", k)
	}
}

func TestWhatIsOldLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO uplink_queue (event_id, pos) VALUES (5, 5);
		INSERT INTO uplink (event_id, supplier_msg_id, phone, dest, at, supplier_account, channel_id, fmt, udhi, content, outcome)
		SELECT i, i, '13800000001', '1069000111', now(), 1, 101, 0, 0, 'x', CASE WHEN i <= 5 THEN 0 ELSE 5 END FROM generate_series(1, 20) i;
		INSERT INTO uplink_unmatched (event_id, at, supplier_account, reason, opt_out, phone, dest)
		SELECT i + (extract(epoch FROM now() - timestamptz '2024-01-01 UTC') * 1000)::bigint << 22, now(), 1, 1, false, '', '' FROM generate_series(1, 120) i;
		INSERT INTO uplink_unmatched (event_id, at, supplier_account, reason, opt_out, phone, dest) VALUES (7, now(), 1, 1, false, '', '');
		INSERT INTO uplink_key (supplier_account, supplier_msg_id, phone, dest, hash, at) VALUES (1, 1, '', '', 1, now() - interval '73 hours'), (1, 2, '', '', 1, now() - interval '71 hours')`)
	b.cfg.UnmatchedMax = 100
	b.run(t)
	eventually(t, "old uplinks are gone, those that wait are not", func() bool {
		return b.count(t, "SELECT count(*) FROM uplink WHERE event_id BETWEEN 1 AND 4") == 4 && b.count(t, "SELECT count(*) FROM uplink WHERE event_id > 5") == 0
	})
	if n := b.count(t, "SELECT count(*) FROM uplink_unmatched"); n != 100 {
		t.Errorf("%d on the list", n)
	}
	if n := b.count(t, "SELECT count(*) FROM uplink_key"); n != 1 {
		t.Errorf("%d keys", n)
	}
}
