package stack

import (
	"os/exec"
	"runtime"
)

// spawner starts child processes from one operating-system thread it keeps for
// itself. Linux sends Pdeathsig when the thread that forked the child ends, not
// when the process does: a child started from an ordinary goroutine may be
// killed because the runtime retired a thread. The thread lives until close,
// so the signal can only mean the end of the whole program.
type spawner struct {
	jobs chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// start starts cmd on the spawner's thread.
func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.jobs <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread. Every child must have ended before.
func (s *spawner) close() {
	close(s.jobs)
	<-s.done
}
