package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// Not parallel with another test that sends signals to this process: there is none.
func TestSecondSignalCutsTheStopShort(t *testing.T) {
	t.Parallel()
	ctx, cut, stop := signals()
	defer stop()
	send := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	send()
	<-ctx.Done()
	send() // a sender that signals the process and then its group means it once
	select {
	case <-cut.Done():
		t.Fatal("the same signal counted twice")
	case <-time.After(again + 200*time.Millisecond):
	}
	send()
	<-cut.Done()
}
