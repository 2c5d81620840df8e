package uplink_test

import (
	"fmt"
	"testing"
	"time"

	"cmppgateway/gateway/sms"
)

func TestWordsThatOptOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run(t)
	words := map[string]bool{
		"T": true, "td": true, "Ｔ": true, "ｔｄ": true, " N ": true, "r": true, "退订": true, "　退订。": true, "拒 收": true, "拒收！！": true, "【退订】": true,
		"TX": false, "不退订": false, "T恤": false, "": false, "？": false, "退订吗": false, "1": false,
	}
	i, want := 0, map[int64]bool{}
	for text, asks := range words {
		i++
		from := 13900000000 + int64(i)
		want[from] = asks
		b.arrive(t, said(uint64(i), fmt.Sprint(from), "1069000111", text))
	}
	gbk, err := sms.EncodeText(sms.FmtGB18030, "退订")
	if err != nil {
		t.Fatal(err)
	}
	// Formats that do not fit their octets.
	b.arrive(t, sent{msgID: 900, phone: "13900000900", dest: "1069000111", content: gbk}, sent{msgID: 901, phone: "13900000901", dest: "1069000111", content: []byte("退订")})
	want[13900000900], want[13900000901] = true, true
	b.settled(t)
	for from, asks := range want {
		n := b.count(t, `SELECT count(*) FROM opt_out o JOIN uplink u ON u.event_id = o.uplink_event_id AND u.opt_out
			WHERE o.phone = $1 AND o.enterprise_id = 1 AND o.signature = '' AND o.marketing_only AND o.source = 2 AND o.reversed_at IS NULL`, from)
		if (n == 1) != asks {
			t.Errorf("%d: %d opt-outs, want %t", from, n, asks)
		}
		if len(b.got(t, fmt.Sprint(from))) != 1 {
			t.Errorf("%d: the customer did not get it", from)
		}
	}
	// The list of words is data.
	b.exec(t, "INSERT INTO opt_out_word (word) VALUES ('不要了'); DELETE FROM opt_out_word WHERE word = 'n'")
	b.arrive(t, said(2000, "13900002000", "1069000111", "不要了。"), said(2001, "13900002001", "1069000111", "N"))
	b.settled(t)
	if b.count(t, "SELECT count(*) FROM opt_out WHERE phone = 13900002000") != 1 || b.count(t, "SELECT count(*) FROM opt_out WHERE phone = 13900002001") != 0 {
		t.Error("the changed words did not hold")
	}
}

// It is the signature of the last message from that number that is meant, and the enterprise that sent it.
func TestWhatIsOptedOutOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.wrote(t, 11, phone, "1069000111", "旧", 2*time.Hour)
	b.wrote(t, 11, phone, "1069000111", "北方", time.Hour)
	b.wrote(t, 11, phone, "106900011199", "南方", time.Minute) // another number
	b.wrote(t, 12, phone, "1069000122", "西方", time.Second)   // another application
	b.wrote(t, 13, phone+1, "55", "东方", time.Hour)
	b.run(t)
	b.arrive(t, said(1, phoneText, "1069000111", "T"))
	b.settled(t)
	if n := b.count(t, "SELECT count(*) FROM opt_out WHERE phone = $1 AND enterprise_id = 1 AND signature = '北方'", int64(phone)); n != 1 || b.count(t, "SELECT count(*) FROM opt_out") != 1 {
		t.Error("not out of the last message from that number")
	}
	b.arrive(t, said(2, "13800000002", "1069000155", "N"))
	b.settled(t)
	if n := b.count(t, "SELECT count(*) FROM opt_out WHERE phone = $1 AND enterprise_id = 2 AND signature = '东方'", int64(phone+1)); n != 1 {
		t.Error("not out of the enterprise that wrote from behind the channel's number")
	}
	if g := b.got(t, "13800000002"); len(g) != 1 || g[0].App != 13 || g[0].Src != "55" {
		t.Errorf("delivered %+v", g)
	}
}

func TestOptOutIsReversible(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.wrote(t, 11, phone, "1069000111", "北方", time.Hour)
	b.exec(t, "INSERT INTO opt_out (phone, enterprise_id, signature, created_by) VALUES (13800000002, 1, '', 'list')")
	b.run(t)
	first := said(1, phoneText, "1069000111", "退订")
	one := b.arrive(t, first)[0]
	b.settled(t)
	state := func() (event int64, inForce bool) {
		t.Helper()
		if err := b.QueryRow(t.Context(), "SELECT uplink_event_id, reversed_at IS NULL FROM opt_out WHERE phone = $1", int64(phone)).Scan(&event, &inForce); err != nil {
			t.Fatal(err)
		}
		return event, inForce
	}
	b.arrive(t, said(2, phoneText, "1069000111", "TD")) // it is in force already
	b.settled(t)
	if event, on := state(); event != one || !on {
		t.Errorf("uplink %d, in force %t; want the first, %d", event, on, one)
	}
	b.exec(t, "UPDATE opt_out SET reversed_at = now(), reversed_by = 'op' WHERE phone = $1", int64(phone))
	b.arrive(t, first) // a repetition asks for nothing
	b.settled(t)
	if _, on := state(); on {
		t.Error("a repetition took the reversal back")
	}
	three := b.arrive(t, said(3, phoneText, "1069000111", "T"))[0]
	b.settled(t)
	if event, on := state(); event != three || !on {
		t.Errorf("asked anew: uplink %d, in force %t; want %d", event, on, three)
	}
	b.arrive(t, said(4, "13800000002", "1069000111", "T")) // a list says more
	b.settled(t)
	if n := b.count(t, "SELECT count(*) FROM opt_out WHERE phone = 13800000002 AND source = 1 AND NOT marketing_only"); n != 1 {
		t.Error("an uplink narrowed what a list says")
	}
}
