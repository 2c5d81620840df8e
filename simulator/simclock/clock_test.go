package simclock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"cmppgateway/simulator/simclock"
)

func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := simclock.New()
		time.Sleep(3 * time.Second)
		if got := c.Now(); got != int64(3*time.Second) {
			t.Errorf("now %d", got)
		}
		if got := c.Time(int64(time.Second)); !got.Equal(c.Base().Add(time.Second)) {
			t.Errorf("time %s", got)
		}
		if ahead, passed := c.Until(int64(5*time.Second)), c.Until(int64(time.Second)); ahead != 2*time.Second || passed != 0 {
			t.Errorf("until %s, %s", ahead, passed)
		}
	})
}
