package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// Not parallel with another test that sends signals to this process: there is none.
func TestSecondSignalCutsTheStopShort(t *testing.T) {
	t.Parallel()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM) // never given back: a late signal must not end this process
	send := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	// A sender that signals the process and then its group means it once, however slow this machine is.
	ctx, cut, stop := signals(time.Hour)
	send()
	<-ctx.Done()
	send()
	select {
	case <-cut.Done():
		t.Error("the same signal counted twice")
	case <-time.After(200 * time.Millisecond):
	}
	stop()

	ctx, cut, stop = signals(0)
	defer stop()
	send()
	<-ctx.Done()
	for cut.Err() == nil { // what is pending already takes no second one
		send()
		select {
		case <-cut.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}
