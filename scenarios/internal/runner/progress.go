package runner

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/sys/unix"
)

// lineEvery is how often progress is written where nobody sees a line move.
const lineEvery = 5 * time.Second

// status is how far a run is.
type status struct {
	Doing                         string // what goes on now
	Elapsed, Expected             time.Duration
	Offered, Accepted             int64
	Submits, Receipts, Unfinished int64
}

func (s status) String() string {
	text := fmt.Sprintf("%s %s", s.Elapsed.Round(time.Second), s.Doing)
	if s.Offered > 0 {
		text += fmt.Sprintf(": offered %d, accepted %d, at suppliers %d, receipts %d", s.Offered, s.Accepted, s.Submits, s.Receipts)
	}
	if s.Unfinished > 0 {
		text += fmt.Sprintf(", not finished %d", s.Unfinished)
	}
	return text
}

// progress shows a status. It is used by one goroutine at a time.
type progress interface {
	show(s status)
	close()
}

// IsTerminal says whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

func newProgress(w io.Writer, name string, tty bool) progress {
	if tty {
		return newBar(w, name)
	}
	return &lines{w: w, name: name}
}

// lines writes a line every 5 s and whenever something else is done.
type lines struct {
	w     io.Writer
	name  string
	doing string
	last  time.Duration
}

func (l *lines) show(s status) {
	if s.Doing == l.doing && s.Elapsed-l.last < lineEvery {
		return
	}
	l.doing, l.last = s.Doing, s.Elapsed
	fmt.Fprintf(l.w, "[%s] %s\n", l.name, s)
}

func (*lines) close() {}

// bar moves one line of a terminal.
type bar struct {
	pool *mpb.Progress
	bar  *mpb.Bar

	mu   sync.Mutex
	last status
}

func newBar(w io.Writer, name string) *bar {
	b := &bar{pool: mpb.New(mpb.WithOutput(w), mpb.WithWidth(30), mpb.WithRefreshRate(250*time.Millisecond))}
	b.bar = b.pool.AddBar(0, // a total given here could not be changed
		mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			b.mu.Lock()
			defer b.mu.Unlock()
			return " " + b.last.String()
		})))
	return b
}

func (b *bar) show(s status) {
	b.mu.Lock()
	b.last = s
	b.mu.Unlock()
	b.bar.SetTotal(max(s.Expected, s.Elapsed+time.Second).Milliseconds(), false)
	b.bar.SetCurrent(s.Elapsed.Milliseconds())
}

func (b *bar) close() {
	b.bar.Abort(true)
	b.pool.Wait()
}
