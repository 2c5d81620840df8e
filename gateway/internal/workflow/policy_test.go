package workflow_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/sms"
)

// text puts one UCS2 SUBMIT of enterprise 1 into the inbox.
func (b *bench) text(t *testing.T, msgID int64, text string, dest ...string) {
	t.Helper()
	content, err := sms.EncodeText(sms.FmtUCS2, text)
	if err != nil {
		t.Fatal(err)
	}
	b.submit(t, 1, msgID, int16(sms.FmtUCS2), string(content), dest...)
}

// reasons are the words of all messages by the customer's Msg_Id; "" = passed.
func (b *bench) reasons(t *testing.T) map[int64]string {
	t.Helper()
	rows, err := b.Query(t.Context(), `SELECT msg_id, reason FROM message`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	words := map[int64]string{}
	for rows.Next() {
		var id int64
		var r message.Reason
		if err := rows.Scan(&id, &r); err != nil {
			t.Fatal(err)
		}
		words[id] = r.String()
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return words
}

// expect checks the reasons, and what must follow from them: a refused message has no command, costs nothing, and its
// customer is told.
func (b *bench) expect(t *testing.T, want map[int64]string) {
	t.Helper()
	got := b.reasons(t)
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if word, ok := got[id]; !ok || word != want[id] {
			t.Errorf("message %d: %q (there: %t), want %q", id, word, ok, want[id])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d messages, want %d", len(got), len(want))
	}
	for what, sql := range map[string]string{
		"refused messages with a command":       `SELECT count(*) FROM message m JOIN submit_outbox s ON s.message_id = m.id WHERE m.reason <> 0`,
		"passed ones without command or hold":   `SELECT count(*) FROM message m WHERE reason = 0 AND NOT EXISTS (SELECT FROM submit_outbox WHERE message_id = m.id) AND NOT EXISTS (SELECT FROM review_hold WHERE message_id = m.id)`,
		"refused messages with money":           `SELECT count(*) FROM message WHERE reason <> 0 AND (bill <> 0 OR freeze_entry <> 0)`,
		"refused messages without a receipt":    `SELECT count(*) FROM message m WHERE reason <> 0 AND (SELECT count(*) FROM delivery d WHERE d.message_id = m.id AND d.stat = m.stat AND d.stat <> '') <> 1`,
		"passed messages with a receipt":        `SELECT count(*) FROM message m JOIN delivery d ON d.message_id = m.id WHERE m.reason = 0`,
		"freezes that differ from messages":     `SELECT (SELECT coalesce(sum(amount), 0) FROM account_entry WHERE kind = 2) - (SELECT coalesce(sum(units * price), 0) FROM message WHERE bill = 1)`,
		"counters that differ from what passed": `SELECT (SELECT coalesce(sum(messages), 0) FROM daily_use) - (SELECT count(*) FROM message WHERE reason = 0)`,
	} {
		if n := b.count(t, sql); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
}

func TestTextsAreCheckedAgainstTheLists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO application_policy (app_id, template_mode) VALUES (11, 2);
		INSERT INTO signature (enterprise_id, text, status) VALUES (1, '北方', 2), (1, '南方', 1), (2, '西方', 2);
		INSERT INTO template (id, enterprise_id, text, status) VALUES (5, 1, '验证码{code:d6-6}', 2), (6, 1, '您好{x}', 2);
		INSERT INTO keyword (id, word, action) VALUES (1, '赌博', 1), (2, '幸运', 3);
		INSERT INTO application_stat VALUES (11, 1, 'SIGN:1');
		INSERT INTO opt_out (phone, enterprise_id, signature, marketing_only) VALUES (13800000001, 0, '', false), (13800000002, 1, '北方', false), (13800000003, 1, '南方', false), (13800000004, 1, '', true), (13800000005, 2, '', false);
		INSERT INTO opt_out (phone, reversed_at) VALUES (13800000006, now());`)
	b.text(t, 1, "【北方】验证码123456", number(9))
	b.text(t, 2, "【南方】验证码123456", number(9)) // not approved
	b.text(t, 3, "【西方】验证码123456", number(9)) // another enterprise's
	b.text(t, 4, "验证码123456", number(9))
	b.text(t, 5, "【北方】验证码12345", number(9))
	b.text(t, 6, "【北方】您好，赌 博", number(9))
	b.text(t, 7, "【北方】您好，幸运儿", number(9))    // alert only
	b.text(t, 8, "【北方】验证码000000", number(1)) // opted out of everything
	b.text(t, 9, "【北方】验证码000000", number(2)) // of the signature
	b.text(t, 10, "【北方】验证码000000", number(3))
	b.text(t, 11, "【北方】验证码000000", number(4)) // of marketing, which it is not
	b.text(t, 12, "【北方】验证码000000", number(5))
	b.text(t, 13, "【北方】验证码000000", number(6)) // reversed
	b.text(t, 20, "【北方】验证码000000", number(7), number(1), number(8))
	b.text(t, 30, "【北方】验证码654321", number(10)) // the next legal one
	b.start(t)
	b.settled(t)
	b.expect(t, map[int64]string{
		1: "", 2: "SIGNATURE", 3: "SIGNATURE", 4: "SIGNATURE", 5: "TEMPLATE", 6: "KEYWORD", 7: "", 8: "BLACKLIST", 9: "BLACKLIST", 10: "", 11: "", 12: "", 13: "",
		20: "", 21: "BLACKLIST", 22: "", 30: "",
	})
	for what, sql := range map[string]string{
		"application's own Stat":        `SELECT count(*) - 3 FROM delivery WHERE stat = 'SIGN:1'`,
		"usual Stats":                   `SELECT count(*) - 2 FROM delivery WHERE stat IN ('TPLFAIL', 'KEYWORD')`,
		"signature noted":               `SELECT count(*) - 1 FROM message WHERE msg_id = 1 AND signature = '北方' AND template_id = 5 AND keyword_id IS NULL`,
		"none noted":                    `SELECT count(*) - 1 FROM message WHERE msg_id = 4 AND signature IS NULL AND template_id IS NULL`,
		"keyword that refused is noted": `SELECT count(*) - 1 FROM message WHERE msg_id = 6 AND keyword_id = 1`,
		"keyword that alerts is noted":  `SELECT count(*) - 1 FROM message WHERE msg_id = 7 AND keyword_id = 2`,
	} {
		if n := b.count(t, sql); n != 0 {
			t.Errorf("%s: off by %d", what, n)
		}
	}
}

func TestFrequencyCountsWhatPassed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO enterprise_policy (enterprise_id, freq_day) VALUES (1, 3), (2, 3);
		INSERT INTO keyword (id, word, action) VALUES (1, '赌博', 1);
		UPDATE account SET available = 325 * 40 WHERE id = 1`)
	b.cfg.BatchMax = 4 // some repetitions are in one batch, some are not
	b.cfg.BatchTarget = 4
	want := map[int64]string{}
	for i := int64(1); i <= 4; i++ { // refused ones do not count
		b.text(t, i, "赌博", number(1))
		want[i] = "KEYWORD"
	}
	for i := int64(11); i <= 18; i++ {
		b.text(t, i, "hi", "+86"+number(1))
		if want[i] = "RISK"; i < 14 {
			want[i] = ""
		}
	}
	b.text(t, 21, "hi", number(2), number(2), number(2), number(2), number(3)) // several to one number in one SUBMIT
	want[21], want[22], want[23], want[24], want[25] = "", "", "", "RISK", ""
	// Old ones, ones that never passed, and those a review refused are not counted.
	for _, m := range []struct {
		phone string
		ago   string
		bill  int
		state int
		n     int
	}{{number(4), "24 hours", 2, 4, 5}, {number(4), "1 second", 0, 6, 5}, {number(4), "1 second", 0, 7, 5}, {number(4), "1 second", 3, 6, 5}, {number(4), "23 hours", 2, 2, 2}, {number(5), "1 hour", 4, 5, 3}} {
		for range m.n {
			id, err := b.ids.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b.exec(t, `INSERT INTO message (id, msg_id, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, units, price_version, state, bill,
				charge_on, refund_on, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
				VALUES ($1, 0, 325, $2::text::bigint, 1, now(), now() - $3::text::interval, 1, 11, 1, 1, $4, $5, 1, 1, 0, 0, 0, 1, 1, 1, '', '', '', '')`, id, m.phone, m.ago, m.state, m.bill)
		}
	}
	b.text(t, 41, "hi", number(4))
	b.text(t, 42, "hi", number(4))
	b.text(t, 43, "hi", number(5))
	want[41], want[42], want[43] = "", "RISK", "RISK"
	b.start(t)
	b.settled(t)
	b.submit(t, 2, 31, 0, "hi", number(1)) // another enterprise
	want[31] = ""
	b.settled(t)
	got := b.reasons(t)
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			t.Errorf("message %d: %q, want %q", id, got[id], want[id])
		}
	}
}

// What the account could not pay has not passed: it takes neither the number's share nor the day's.
func TestWhatIsNotPaidForDoesNotCount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO enterprise_policy (enterprise_id, freq_day, daily_quota) VALUES (1, 1, 2); UPDATE account SET available = 325 * 2 WHERE id = 1`)
	b.text(t, 1, "hi", number(1), number(2), number(3)) // QUOTA for the third: two are affordable
	b.text(t, 11, strings.Repeat("长", 70*3), number(4))
	b.start(t)
	b.settled(t)
	b.expect(t, map[int64]string{1: "", 2: "", 3: "QUOTA", 11: "QUOTA"})

	c := setup(t)
	c.exec(t, `INSERT INTO enterprise_policy (enterprise_id, freq_day, daily_quota) VALUES (1, 1, 1); UPDATE account SET available = 325 WHERE id = 1`)
	c.submit(t, 1, 1, 0, strings.Repeat("x", 160), number(1)) // three units: too dear
	c.text(t, 2, "hi", number(1))                             // so this is the first to the number, and of the day
	c.start(t)
	c.settled(t)
	c.expect(t, map[int64]string{1: "BALANCE", 2: ""})
}

func TestQuotasAreOfTheDayInChina(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (21, 1, 325, '100021', 's', 'second');
		INSERT INTO enterprise_policy (enterprise_id, daily_quota) VALUES (1, 100);
		INSERT INTO application_policy (app_id, signature_mode, daily_quota) VALUES (11, 0, 12);
		INSERT INTO daily_use SELECT 1, (now() AT TIME ZONE 'Asia/Shanghai')::date - 1, 11, 1000;
		-- today, and tomorrow should midnight in China fall into the test
		INSERT INTO daily_use SELECT 1, (now() AT TIME ZONE 'Asia/Shanghai')::date + d, 11, 10 FROM generate_series(0, 1) d;
		INSERT INTO daily_use SELECT 1, (now() AT TIME ZONE 'Asia/Shanghai')::date + d, 21, 80 FROM generate_series(0, 1) d;`)
	want := map[int64]string{}
	for i := range int64(4) {
		b.text(t, i+1, "hi", number(int(i)))
		if want[i+1] = "QUOTA"; i < 2 {
			want[i+1] = ""
		}
	}
	b.start(t)
	b.settled(t)
	got := b.reasons(t)
	if !maps.Equal(got, want) {
		t.Errorf("reasons %v, want %v", got, want)
	}
	b.exec(t, `UPDATE enterprise_policy SET daily_quota = 90; DELETE FROM application_policy; UPDATE settings_version SET version = version + 1`)
	if err := b.watch.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.text(t, 11, "hi", number(11))
	b.settled(t)
	if got := b.reasons(t)[11]; got != "QUOTA" {
		t.Errorf("beyond the enterprise's quota: %q", got)
	}
}

func TestTheSameContentAgainIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO application_policy (app_id, signature_mode, duplicate_seconds) VALUES (11, 0, 3600)`)
	b.start(t)
	b.text(t, 1, "first", number(1))
	b.settled(t)
	b.text(t, 2, "first", number(1))
	b.text(t, 3, "second", number(1))
	b.text(t, 4, "second", number(1))
	b.text(t, 5, "first", number(2))
	b.submit(t, 2, 6, 0, "hi", number(1))
	b.submit(t, 2, 7, 0, "hi", number(1)) // another application
	b.settled(t)
	b.expect(t, map[int64]string{1: "", 2: "RISK", 3: "", 4: "RISK", 5: "", 6: "", 7: ""})
}

func TestHeldMessagesAreFrozenAndWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO keyword (id, word, action) VALUES (2, '代开', 2)`)
	b.cfg.ReviewMax = 3
	b.text(t, 1, "代开发票", number(1), number(2))
	b.text(t, 3, "hi", number(3))
	b.start(t)
	b.settled(t)
	b.text(t, 4, "代开发票", number(4), number(5)) // one more is the bound
	b.settled(t)
	b.expect(t, map[int64]string{1: "", 2: "", 3: "", 4: "", 5: "KEYWORD"})
	if n := b.count(t, `SELECT count(*) FROM review_hold h JOIN message m ON m.id = h.message_id
		WHERE h.keyword_id = 2 AND h.app_id = 11 AND h.enterprise_id = 1 AND m.state = 1 AND m.bill = 1 AND h.expires_at <= m.valid_until AND h.expires_at > h.held_at`); n != 3 {
		t.Errorf("%d holds, want 3", n)
	}
	if got := b.count(t, `SELECT available FROM account WHERE id = 1`); got != 1_000_000-4*325 {
		t.Errorf("available %d", got)
	}
}

func TestRoutesByRulePortedNumberAndSegment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO channel (id, account_id, access_number, name, enabled, signature_required) VALUES (3, 1, '1069', 'unicom', true, false), (4, 1, '1069', 'off', false, false), (5, 1, '10695', 'strict', true, true);
		INSERT INTO channel_group (id, name) VALUES (2, 'unicom'), (3, 'off'), (4, 'strict');
		INSERT INTO channel_group_member (group_id, channel_id, priority) VALUES (2, 3, 0), (3, 4, 0), (4, 5, 0);
		INSERT INTO application_route (app_id, carrier, group_id) VALUES (11, 2, 2), (11, 3, 3), (11, 4, 4);
		INSERT INTO signature (id, enterprise_id, text, status) VALUES (1, 1, '北方', 2);
		INSERT INTO signature_number VALUES (1, '10695', 2);
		INSERT INTO prefix_rule (prefix, carrier) VALUES ('1380001', 2);
		INSERT INTO number_override (phone, carrier, source) VALUES (13800020001, 2, 1), (13800010002, 1, 2), (15400000001, 1, 1);`)
	for id, dest := range map[int64]string{
		1: "13800000001", // segment: mobile
		2: "13800010001", // rule
		3: "13800020001", // ported
		4: "13800010002", // a rule comes before a ported number
		5: "13300000001", // all channels off
		6: "15400000002", // no segment
		7: "15400000001", // no segment, but ported
	} {
		b.text(t, id, "hi", dest)
	}
	b.text(t, 8, "hi", "19200000001") // the channel wants a signature that is approved for its number
	b.text(t, 9, "【北方】hi", "19200000001")
	b.start(t)
	b.settled(t)
	b.expect(t, map[int64]string{1: "", 2: "", 3: "", 4: "", 5: "ROUTE", 6: "ROUTE", 7: "", 8: "SIGNATURE", 9: ""})
	for id, want := range map[int64]int64{1: 1, 2: 3, 3: 3, 4: 3, 5: 0, 6: 0, 7: 1, 8: 0, 9: 5} {
		if got := b.count(t, `SELECT channel_id FROM message WHERE msg_id = $1`, id); got != want {
			t.Errorf("message %d went to channel %d, want %d", id, got, want)
		}
	}
	b.exec(t, `UPDATE channel SET enabled = false WHERE id = 1; UPDATE settings_version SET version = version + 1`)
	if err := b.watch.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.text(t, 10, "hi", "13800000009")
	b.settled(t)
	if got := b.count(t, `SELECT channel_id FROM message WHERE msg_id = 10`); got != 2 {
		t.Errorf("channel %d with the primary disabled, want the backup", got)
	}
}

// A panic or a failing statement of policy is the row's, not the batch's; nothing of it is counted.
func TestTextsThatNoColumnHolds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, text := range []string{"【a\x00b】hi", "hi\x00", "【" + strings.Repeat("长", 33) + "】", "\ufeff【北方】hi", "【北\u202e方】hi"} {
		b.text(t, int64(i+1), text, number(i))
	}
	b.start(t)
	b.settled(t)
	want := map[int64]string{1: "", 2: "", 3: "", 4: "", 5: ""}
	b.expect(t, want)
	if n := b.count(t, `SELECT count(*) FROM dead_letter`); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// Two processes share an enterprise's limits exactly.
func TestTwoProcessesCountTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO enterprise_policy (enterprise_id, freq_day, daily_quota) VALUES (1, 5, 0)`)
	b.cfg.BatchMax, b.cfg.BatchTarget = 7, 7
	b.start(t)
	b.start(t)
	for i := range 200 {
		b.text(t, int64(i+1), "hi", number(i%10))
	}
	b.settled(t)
	if n := b.count(t, `SELECT count(*) FROM (SELECT phone FROM message WHERE reason = 0 GROUP BY phone HAVING count(*) <> 5) x`); n != 0 {
		t.Errorf("%d numbers with another count than 5", n)
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE reason = 0`); n != 50 {
		t.Errorf("%d passed, want 50", n)
	}
	if n := b.count(t, `SELECT sum(messages) FROM daily_use`); n != 50 {
		t.Errorf("counted %d, want 50", n)
	}
}

// A number that is full is not asked about again for a while: a customer who sends to it in a loop would make each question
// read all that was refused. New limits are asked about at once.
func TestFullNumbersAreRemembered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO enterprise_policy (enterprise_id, freq_day) VALUES (1, 2)`)
	b.start(t)
	want := map[int64]string{}
	for i := int64(1); i <= 6; i++ { // each in a batch of its own; the third finds the number full
		b.text(t, i, "hi", number(1))
		b.settled(t)
		if want[i] = "RISK"; i < 3 {
			want[i] = ""
		}
	}
	b.exec(t, `UPDATE message SET created_at = created_at - interval '2 days'`) // what was remembered does not see it
	b.text(t, 7, "hi", number(1))
	want[7] = "RISK"
	b.settled(t)
	b.exec(t, `UPDATE enterprise_policy SET freq_day = 1; UPDATE settings_version SET version = version + 1`)
	if err := b.watch.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.text(t, 8, "hi", number(1))
	b.settled(t)
	b.text(t, 9, "hi", number(1))
	want[8], want[9] = "", "RISK"
	b.settled(t)
	if got := b.reasons(t); !maps.Equal(got, want) {
		t.Errorf("reasons %v, want %v", got, want)
	}
}
