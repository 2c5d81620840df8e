package reconcile_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/text/encoding/simplifiedchinese"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/reconcile"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// Account 1 has channel 1 (mobile) and channel 2 (unicom), which differ by access number; account 2 is another supplier.
const settingsSQL = `
INSERT INTO enterprise (id, name) VALUES (1, 'a');
INSERT INTO account (id, available) VALUES (1, 0);
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (11, 1, 325, '100001', 's', 'a');
INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES
  (1, 8, 64, '127.0.0.1:1', '900001', 's', 'north'), (2, 8, 64, '127.0.0.1:2', '900002', 's', 'south');
INSERT INTO channel (id, account_id, access_number, name) VALUES (1, 1, '10690', 'p'), (2, 1, '10691', 'q'), (3, 2, '1069', 'r');`

// bench is a database with submits of today's business day.
type bench struct {
	*pgxpool.Pool

	ids  *message.IDs
	snap *settings.Snapshot
	day  time.Time // noon, Asia/Shanghai
	n    int64
}

func setup(t *testing.T) *bench {
	t.Helper()
	cfg := config.Default()
	cfg.Postgres.URL = testenv.DB(t)
	pools, err := store.Open(t.Context(), cfg.Postgres, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pools.Close)
	// Ids of a fixed day would need its leaf: the day is the one that holds now.
	year, month, day := time.Now().In(cmpp.Shanghai).Date()
	b := &bench{Pool: testenv.ZonePool(t, pools.Admin), day: time.Date(year, month, day, 12, 0, 0, 0, cmpp.Shanghai)}
	if err := store.EnsurePartitions(t.Context(), b.Pool, b.day.Add(-24*time.Hour), store.LeafDays); err != nil {
		t.Fatal(err)
	}
	b.ids = message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now)
	b.exec(t, settingsSQL)
	if b.snap, err = settings.Load(t.Context(), b.Pool); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// sent is one submit of a single message: accepted unless another state is given.
type sent struct {
	channel int32
	msgID   int64
	phone   int64
	at      time.Time
	state   message.Submit
	result  int
	text    string
	parts   int16
	part    int16

	message, submit int64
}

func (b *bench) send(t *testing.T, s sent) sent {
	t.Helper()
	b.n++
	s.channel, s.parts, s.part = max(s.channel, 1), max(s.parts, 1), max(s.part, 1)
	if s.phone == 0 {
		s.phone = 13800000000 + b.n
	}
	if s.at.IsZero() {
		s.at = b.day
	}
	if s.state == 0 {
		s.state = message.Accepted
	}
	if s.msgID == 0 && s.state == message.Accepted {
		s.msgID = -b.n // the top bit is set from August on
	}
	if s.text == "" {
		s.text = "x"
	}
	carrier := routing.Mobile
	if s.channel == 2 {
		carrier = routing.Unicom
	}
	content, err := simplifiedchinese.GB18030.NewEncoder().String(s.text)
	if err != nil {
		t.Fatal(err)
	}
	// Ids are of the dispatch, as they are in a running gateway.
	base := message.FirstID(s.at) + b.n*2
	if s.message == 0 {
		s.message = base
		state, bill, freeze := message.Submitted, message.Charged, int64(1)
		if s.state == message.SubmitUnknown {
			state, bill = message.Unknown, message.Frozen
		}
		settle := int64(0)
		if bill == message.Charged {
			settle = 2
		}
		b.exec(t, `INSERT INTO message (id, msg_id, freeze_entry, settle_entry, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, channel_id, units, price_version,
			state, bill, charge_on, refund_on, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content, carrier, parts)
			VALUES ($1, $1, $2, $3, 325, $4, 1, $5, $5, 1, 11, $6, 1, 1, $7, $8, 1, 1, 1, 15, 0, 1, 1, 1, '', '10690', '', $9, $10, $11)`,
			s.message, freeze, settle, s.phone, s.at, s.channel, state, bill, []byte(content), int16(carrier), s.parts)
	}
	s.submit = base + 1
	b.exec(t, `INSERT INTO submit (id, message_id, supplier_msg_id, dispatched_at, resp_at, channel_id, account_id, enterprise_id, result, attempt, part, parts, state, node)
		SELECT $1, $2, $3, $4, $4, c.id, c.account_id, 1, $5, 1, $6, $7, $8, 1 FROM channel c WHERE c.id = $9`,
		s.submit, s.message, s.msgID, s.at, s.result, s.part, s.parts, s.state, s.channel)
	if s.state == message.SubmitUnknown {
		b.exec(t, `INSERT INTO unknown_submit (submit_id, message_id, phone, dispatched_at, supplier_account, channel_id, part, src)
			SELECT $1, $2, $3, $4, c.account_id, c.id, $5, '10690' FROM channel c WHERE c.id = $6`, s.submit, s.message, s.phone, s.at, s.part, s.channel)
	}
	return s
}

const header = "account,msg_id,number,src_id,submit_time,result\n"

// line is s as the simulator's statement lists it.
func line(s sent) string {
	src := "10690"
	if s.channel == 2 {
		src = "10691"
	}
	return fmt.Sprintf("900001,%d,%d,%s,%s,%d\n", uint64(s.msgID), s.phone, src, s.at.In(cmpp.Shanghai).Format(time.RFC3339Nano), s.result)
}

func (b *bench) run(t *testing.T, statement string, change ...func(*reconcile.Options)) *reconcile.Report {
	t.Helper()
	o := reconcile.Options{Pool: b.Pool, IDs: b.ids, Snapshot: b.snap, Account: 1, Day: b.day, From: strings.NewReader(statement), File: "day.csv"}
	for _, f := range change {
		f(&o)
	}
	r, err := reconcile.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantKinds(t *testing.T, r *reconcile.Report, want map[reconcile.Kind]int64) {
	t.Helper()
	if !maps.Equal(r.Kinds, want) {
		t.Errorf("differences %v, want %v: %+v", r.Kinds, want, r.List)
	}
}

func TestEqualDay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	midnight := b.day.Add(-12 * time.Hour)
	list := []sent{
		b.send(t, sent{}),
		b.send(t, sent{channel: 2, phone: 13000000001}),
		b.send(t, sent{channel: 2, phone: 13000000002}),
		b.send(t, sent{at: midnight}),
		b.send(t, sent{at: midnight.Add(-time.Second)}), // they saw it after midnight
		b.send(t, sent{msgID: 7, phone: 13800001111}),
		b.send(t, sent{msgID: 7, phone: 13800001111, at: b.day.Add(time.Minute)}), // an id used twice
		b.send(t, sent{state: message.Refused, result: 8}),
	}
	b.send(t, sent{at: midnight.Add(-2 * time.Second)}) // of yesterday's statement
	b.send(t, sent{channel: 3})                         // of another supplier
	b.send(t, sent{state: message.Refused, result: 8})  // refused, and not listed by them
	statement := header + "900002,1,13800000000,1,,0\n" // a line of another account
	for _, s := range list {
		statement += line(s)
	}
	r := b.run(t, statement)
	wantKinds(t, r, map[reconcile.Kind]int64{})
	want := []reconcile.Cell{
		{Channel: 1, Carrier: routing.Mobile, OursN: 5, OursUnits: 5, TheirsN: 5, TheirsUnits: 5},
		{Channel: 2, Carrier: routing.Unicom, OursN: 2, OursUnits: 2, TheirsN: 2, TheirsUnits: 2},
	}
	if !reflect.DeepEqual(r.Cells, want) {
		t.Errorf("cells %+v, want %+v", r.Cells, want)
	}
	if r.Alert() || r.Ratio != 0 || r.Lines != int64(len(list)) {
		t.Errorf("alert %t, ratio %f, %d lines", r.Alert(), r.Ratio, r.Lines)
	}
}

func TestEveryDifference(t *testing.T) {
	t.Parallel()
	b := setup(t)
	equal, ours, refused, accepted := b.send(t, sent{}), b.send(t, sent{}), b.send(t, sent{state: message.Refused, result: 9}), b.send(t, sent{})
	number, id := b.send(t, sent{}), b.send(t, sent{})
	absent := b.send(t, sent{state: message.SubmitUnknown})
	theirs := sent{channel: 2, msgID: 4711, phone: 13000000009, at: b.day}
	refused.result, refused.msgID, accepted.result = 0, 4712, 8
	otherNumber, otherID := number, id
	otherNumber.phone, otherID.msgID = 13800009999, 4713
	r := b.run(t, header+line(equal)+line(theirs)+line(refused)+line(accepted)+line(otherNumber)+line(otherID))
	wantKinds(t, r, map[reconcile.Kind]int64{
		reconcile.OnlyOurs: 1, reconcile.OnlyTheirs: 1, reconcile.Result: 2, reconcile.Number: 1, reconcile.MsgID: 1, reconcile.Absent: 1,
	})
	submits := map[reconcile.Kind][]int64{}
	for _, d := range r.List {
		submits[d.Kind] = append(submits[d.Kind], d.SubmitID)
	}
	for kind, want := range map[reconcile.Kind]int64{reconcile.OnlyOurs: ours.submit, reconcile.Number: number.submit, reconcile.MsgID: id.submit, reconcile.Absent: absent.submit} {
		if got := submits[kind]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: submits %v, want %d", kind, got, want)
		}
	}
	want := []reconcile.Cell{
		{Channel: 1, Carrier: routing.Mobile, OursN: 5, OursUnits: 5, TheirsN: 4, TheirsUnits: 4},
		{Channel: 2, Carrier: routing.Unicom, TheirsN: 1, TheirsUnits: 1},
	}
	if !reflect.DeepEqual(r.Cells, want) {
		t.Errorf("cells %+v, want %+v", r.Cells, want)
	}
	if !r.Alert() {
		t.Errorf("no alert at a ratio of %f", r.Ratio)
	}
	var out strings.Builder
	if err := r.Write(&out); err != nil || !strings.Contains(out.String(), fmt.Sprintf("only_ours: number %d", ours.phone)) {
		t.Errorf("%v: %s", err, &out)
	}
}

// The alert begins above one in a thousand.
func TestAlertAboveOneInAThousand(t *testing.T) {
	t.Parallel()
	for differing, want := range map[int64]bool{1: false, 2: true} {
		r := reconcile.Report{Differing: differing, Ratio: float64(differing) / 1000}
		if r.Alert() != want {
			t.Errorf("%d of 1000: alert %t", differing, r.Alert())
		}
	}
}

func (b *bench) state(t *testing.T, s sent) (state message.State, bill message.Bill) {
	t.Helper()
	if err := b.QueryRow(t.Context(), `SELECT state, bill FROM message WHERE id = $1`, s.message).Scan(&state, &bill); err != nil {
		t.Fatal(err)
	}
	return state, bill
}

// A statement closes unknown submits once; what is stored is what was reported, and a repetition replaces it.
func TestUnknownsAreClosedByEvidence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.send(t, sent{})
	listed := b.send(t, sent{state: message.SubmitUnknown})
	// Another submit to an unknown one's number: its line has its Msg_Id, so it is no evidence for the unknown one.
	absent := b.send(t, sent{state: message.SubmitUnknown})
	same := b.send(t, sent{phone: absent.phone})
	evidence := listed
	evidence.msgID = 815
	statement := header + line(other) + line(same) + line(evidence)
	dry := b.run(t, statement, func(o *reconcile.Options) { o.Dry = true })
	if state, _ := b.state(t, listed); state != message.Unknown || dry.Closed != 0 {
		t.Fatalf("a dry run closed: %s, %d", state, dry.Closed)
	}
	if _, err := reconcile.Find(t.Context(), b.Pool, 1, b.day); err != reconcile.ErrNone { //nolint:errorlint // documented
		t.Fatalf("a dry run was stored: %v", err)
	}
	r := b.run(t, statement)
	wantKinds(t, r, map[reconcile.Kind]int64{reconcile.Absent: 1})
	if r.Closed != 1 {
		t.Errorf("%d closed, want 1", r.Closed)
	}
	if state, bill := b.state(t, listed); state != message.Submitted || bill != message.Charged {
		t.Errorf("listed: %s, %s", state, bill)
	}
	if state, bill := b.state(t, absent); state != message.Unknown || bill != message.Frozen {
		t.Errorf("absent: %s, %s", state, bill)
	}
	stored, err := reconcile.Find(t.Context(), b.Pool, 1, b.day)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Closed != 1 || !reflect.DeepEqual(stored.Cells, r.Cells) || !maps.Equal(stored.Kinds, r.Kinds) || len(stored.List) != 1 || stored.List[0].SubmitID != absent.submit ||
		stored.SHA256 != r.SHA256 {
		t.Errorf("stored %+v, reported %+v", stored, r)
	}
	// Again: nothing is left to close, and the closed one is an equal line now.
	r = b.run(t, statement, func(o *reconcile.Options) { o.Absent = settlement.NotSent })
	wantKinds(t, r, map[reconcile.Kind]int64{})
	if state, bill := b.state(t, absent); state != message.Failed || bill != message.Released {
		t.Errorf("not sent: %s, %s", state, bill)
	}
	list, err := reconcile.List(t.Context(), b.Pool, 10)
	if err != nil || len(list) != 1 || list[0].Closed != 1 || list[0].Differing != 0 {
		t.Errorf("%v, %+v", err, list)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.send(t, sent{at: b.day, text: strings.Repeat("字", 71)}) // two units by cn-70-67
	encode := func(s string) string {
		out, err := simplifiedchinese.GB18030.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	local := s.at.In(cmpp.Shanghai)
	for name, c := range map[string]struct {
		format    string
		statement string
		differ    map[reconcile.Kind]int64
	}{
		"gb18030 heads, tabs": {
			"{columns: {msg_id: 消息编号, number: 手机号, time: 提交时间, result: 状态}, delimiter: \"\\t\", encoding: gb18030, accepted: [成功], msg_id_base: hex, time_layout: 2006/01/02 15.04.05}",
			encode("消息编号\t手机号\t提交时间\t状态\n" + fmt.Sprintf("%016X\t+86%d\t%s\t成功\n", uint64(s.msgID), s.phone, local.Format("2006/01/02 15.04.05"))),
			nil,
		},
		"places": {
			`{columns: {msg_id: "2", number: "1"}, no_header: true, delimiter: "|", msg_id_base: decimal}`,
			fmt.Sprintf("%d|%d\n", s.phone, uint64(s.msgID)), nil,
		},
		"units agree": {
			"{columns: {msg_id: id, number: to, units: n}, unit_rule: cn-70-67}",
			fmt.Sprintf("id,to,n\n%d,%d,2\n", uint64(s.msgID), s.phone), nil,
		},
		"units differ": {
			"{columns: {msg_id: id, number: to, units: n}, unit_rule: cn-70-67}",
			fmt.Sprintf("id,to,n\n%d,%d,3\n", uint64(s.msgID), s.phone),
			map[reconcile.Kind]int64{reconcile.Units: 1},
		},
		"their day begins at one in the afternoon": {
			"{columns: {msg_id: id, number: to}, day_cutoff: -11h}",
			"id,to\n1,13800008888\n",
			map[reconcile.Kind]int64{reconcile.OnlyOurs: 1, reconcile.OnlyTheirs: 1}, // yesterday 13:00 to today 13:00
		},
		"their day begins in the afternoon": {
			"{columns: {msg_id: id, number: to}, day_cutoff: 12h}",
			"id,to\n1,13800008888\n",
			map[reconcile.Kind]int64{reconcile.OnlyOurs: 1, reconcile.OnlyTheirs: 1}, // noon is in
		},
	} {
		f, err := reconcile.ReadFormat(strings.NewReader(c.format))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := reconcile.SetFormat(t.Context(), b.Pool, 1, f); err != nil {
			t.Fatal(err)
		}
		stored, err := reconcile.FormatOf(t.Context(), b.Pool, 1)
		if err != nil || !reflect.DeepEqual(stored, f) {
			t.Errorf("%s: %v, stored %+v, want %+v", name, err, stored, f)
		}
		if r := b.run(t, c.statement); !maps.Equal(r.Kinds, c.differ) {
			t.Errorf("%s: %+v", name, r.List)
		}
	}
	// The same day by a cut-off after noon: the submit is of the day before.
	if err := reconcile.SetFormat(t.Context(), b.Pool, 1, reconcile.Format{Columns: reconcile.Columns{MsgID: "id", Number: "to"}, DayCutoff: "11h59m59s"}); err != nil {
		t.Fatal(err)
	}
	wantKinds(t, b.run(t, "id,to\n1,13800008888\n", func(o *reconcile.Options) { o.Day = o.Day.AddDate(0, 0, -1) }), map[reconcile.Kind]int64{reconcile.OnlyTheirs: 1})
}

func TestFormatFaults(t *testing.T) {
	t.Parallel()
	_, err := reconcile.ReadFormat(strings.NewReader(`{columns: {number: x}, delimiter: ab, encoding: latin1, msg_id_base: octal, day_cutoff: 13h, unit_rule: words}`))
	for _, want := range []string{"columns.msg_id", "delimiter", "latin1", "octal", "13h", "words", "columns.units"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if _, err := reconcile.ReadFormat(strings.NewReader(`{columns: {msg_id: a, number: b, colour: c}}`)); err == nil || !strings.Contains(err.Error(), "colour") {
		t.Errorf("unknown key: %v", err)
	}
}

// A faulty statement changes nothing and names its faulty lines, not only the first.
func TestFaultyStatements(t *testing.T) {
	t.Parallel()
	b := setup(t)
	unknown := b.send(t, sent{state: message.SubmitUnknown})
	good := line(unknown)
	run := func(statement string) error {
		_, err := reconcile.Run(t.Context(), reconcile.Options{Pool: b.Pool, IDs: b.ids, Snapshot: b.snap, Account: 1, Day: b.day, From: strings.NewReader(statement)})
		return err
	}
	for statement, wants := range map[string][]string{
		"":                        {"first line"},
		"account,msg_id,number\n": {`no column "src_id"`, `no column "submit_time"`, `no column "result"`},
		header + good + "900001,x,1380,1,yesterday,0\n900001,1,13800000001,1,2608250101,0\n900001,1,12,1,2608250101,0\n": {`line 3: msg_id "x"`, "number", "yesterday", "line 5: number"},
	} {
		err := run(statement)
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v does not say %s", statement, err, want)
			}
		}
	}
	if err := run(header + strings.Repeat("900001,x,1,1,x,0\n", 30)); err == nil || strings.Contains(err.Error(), "line 25") || !strings.Contains(err.Error(), "perhaps more") {
		t.Errorf("thirty faulty lines: %v", err)
	}
	if state, _ := b.state(t, unknown); state != message.Unknown {
		t.Errorf("a faulty statement closed an unknown submit: %s", state)
	}
	if _, err := reconcile.Run(t.Context(), reconcile.Options{Pool: b.Pool, Snapshot: b.snap, Account: 9, Day: b.day}); err == nil || !strings.Contains(err.Error(), "account 9") {
		t.Errorf("an account that does not exist: %v", err)
	}
}
