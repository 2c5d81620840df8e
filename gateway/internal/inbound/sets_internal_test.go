package inbound

import (
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
)

func TestSetsAdmit(t *testing.T) {
	t.Parallel()
	s := &sets{most: 2, rowsMost: 1, apps: map[int32]*waitingSets{}}
	now := time.Now()
	admit := func(app int32, ref, number byte, at time.Time) bool {
		p := &cmpp.Submit{DestTerminalID: []string{"13800000001", "13800000002"}, SrcID: "1069", TPUDHI: 1, MsgContent: []byte{5, 0, 3, ref, 2, number, 'x'}}
		return s.admit(app, p, &checked{atTime: at}, now) == ""
	}
	if !admit(1, 1, 1, time.Time{}) || !admit(1, 2, 1, time.Time{}) {
		t.Fatal("refused below the bound")
	}
	if admit(1, 3, 1, time.Time{}) {
		t.Error("a third long message is let in")
	}
	if !admit(1, 2, 2, time.Time{}) {
		t.Error("a segment of one that waits is refused")
	}
	if !admit(2, 3, 1, time.Time{}) {
		t.Error("another application is refused")
	}
	if s.admit(1, &cmpp.Submit{DestTerminalID: []string{"1"}, MsgContent: []byte("x")}, &checked{}, now) != "" {
		t.Error("what is no segment is refused")
	}
	if sets, _ := s.waiting(); sets != 2 {
		t.Errorf("%d sets", sets)
	}
	s.apps[3] = &waitingSets{keys: map[int64]struct{}{}, fresh: map[int64]time.Time{}, scheduled: 1}
	if admit(3, 1, 1, now.Add(time.Hour)) || !admit(3, 1, 1, time.Time{}) {
		t.Error("the bound of SUBMITs for later does not hold, or holds for others")
	}
}
