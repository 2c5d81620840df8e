package uplink

import (
	"testing"

	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
)

// snapshot: account 1 has channel 1 (10690001) and channel 2 (1069), account 2 has channel 3 (10690001).
// Applications 1 (no number), 2 (1069, through channel 1), 3 (1069000188), 4 (1069000188001), 5 and 6 (106999, the second
// deleted), 7 (95588, other people's number), 8 (10690001, by no route).
func snapshot() *settings.Snapshot {
	s := &settings.Snapshot{
		Applications: map[int32]*settings.Application{}, Channels: map[int32]*settings.Channel{}, Groups: map[int32]*routing.Group{},
		Accounts: map[int32]*settings.SupplierAccount{1: {ID: 1}, 2: {ID: 2}},
	}
	for id, c := range map[int32]settings.Channel{
		1: {AccountID: 1, AccessNumber: "10690001", AppendExtension: true},
		2: {AccountID: 1, AccessNumber: "1069", AppendExtension: true},
		3: {AccountID: 2, AccessNumber: "10690001"},
	} {
		c.ID = id
		s.Channels[id] = &c
		s.Groups[id] = &routing.Group{ID: id, Candidates: []routing.Candidate{{ChannelID: id}}}
	}
	for id, a := range map[int32]settings.Application{
		1: {Routes: map[routing.Carrier]int32{1: 1, 2: 3}},
		2: {AccessNumber: "1069", Routes: map[routing.Carrier]int32{1: 1}},
		3: {AccessNumber: "1069000188", Routes: map[routing.Carrier]int32{1: 1}},
		4: {AccessNumber: "1069000188001"},
		5: {AccessNumber: "106999"},
		6: {AccessNumber: "106999", Status: deleted},
		7: {AccessNumber: "95588"},
	} {
		a.ID = id
		if a.Status == 0 {
			a.Status = settings.Active
		}
		s.Applications[id] = &a
	}
	return s
}

func TestWhoseNumberItIs(t *testing.T) {
	t.Parallel()
	n := newNumbers(snapshot())
	for _, c := range []struct {
		name    string
		account int32
		dest    string
		senders []sender
		app     int32 // 0 = nobody's
		number  string
		reason  Reason
	}{
		{"its own number", 1, "1069000188", nil, 3, "1069000188", 0},
		{"with digits of the phone", 1, "106900018877", nil, 3, "106900018877", 0},
		{"the longest prefix", 1, "106900018800177", nil, 4, "106900018800177", 0},
		{"longer than any", 1, "1069000188001", nil, 4, "1069000188001", 0},
		{"an application that is deleted has no number", 1, "10699912", nil, 5, "10699912", 0},
		{"another's supplier has no such channel", 2, "95588123", nil, 7, "95588123", 0},
		{"nobody's", 2, "12345", nil, 0, "", NoApplication},
		{"no number", 1, "", nil, 0, "", NoApplication},
		{"the only one behind the channel", 2, "1069000155", nil, 1, "55", 0},
		{"and without an extension it is the whole number", 2, "10690001", nil, 1, "10690001", 0},
		{"several behind the channel", 1, "1069000155", nil, 0, "", Ambiguous},
		{"several, one wrote", 1, "1069000155", []sender{{app: 1, channel: 1, src: []byte("55")}}, 1, "55", 0},
		{"the last one that wrote", 1, "106900015577", []sender{{app: 2, channel: 1, src: []byte("106955")}, {app: 1, channel: 1, src: []byte("55")}}, 2, "10695577", 0},
		{"not from that number", 1, "1069000155", []sender{{app: 2, channel: 1, src: []byte("106966")}, {app: 1, channel: 1, src: []byte("5")}}, 1, "55", 0},
		{"cut by the supplier", 1, "106900015", []sender{{app: 2, channel: 1, src: []byte("106955")}}, 2, "106955", 0},
		{"who wrote does not take another's number", 1, "106900018877", []sender{{app: 1, channel: 1, src: []byte("88")}}, 3, "106900018877", 0},
		{"who wrote has no part in the channel", 1, "1069000155", []sender{{app: 7, channel: 1, src: []byte("9558855")}}, 0, "", Ambiguous},
		{"a channel that is gone says nothing", 1, "1069000155", []sender{{app: 1, channel: 9, src: []byte("55")}}, 0, "", Ambiguous},
		{"21 digits at most", 2, "106900011234567890123456789", nil, 1, "1234567890123456789", 0},
	} {
		o, reason := n.ownerOf(c.account, c.dest, c.senders)
		var app int32
		if o.app != nil {
			app = o.app.ID
		}
		if app != c.app || o.number != c.number || reason != c.reason {
			t.Errorf("%s: application %d, number %q, reason %d; want %d, %q, %d", c.name, app, o.number, reason, c.app, c.number, c.reason)
		}
	}
}

// The channel's very number belongs to who has it, when nobody wrote; who wrote is asked first.
func TestTheChannelsOwnNumber(t *testing.T) {
	t.Parallel()
	s := snapshot()
	s.Applications[8] = &settings.Application{ID: 8, Status: settings.Active, AccessNumber: "10690001"}
	n := newNumbers(s)
	if o, _ := n.ownerOf(1, "1069000155", nil); o.app == nil || o.app.ID != 8 || o.number != "1069000155" {
		t.Errorf("nobody wrote: %+v", o)
	}
	if o, _ := n.ownerOf(1, "1069000155", []sender{{app: 1, channel: 1, src: []byte("55")}}); o.app == nil || o.app.ID != 1 || o.number != "55" {
		t.Errorf("another one wrote: %+v", o)
	}
}
