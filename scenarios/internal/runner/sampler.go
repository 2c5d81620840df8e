package runner

import (
	"context"
	_ "embed" // the statements
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/simclock"
)

//go:embed sql/activity.sql
var activitySQL string

//go:embed sql/counters.sql
var countersSQL string

//go:embed sql/statements.sql
var statementsSQL string

//go:embed sql/costly.sql
var costlySQL string

//go:embed sql/tables.sql
var tablesSQL string

// second is what was seen at one tick of the sampler.
type second struct {
	at                       int64 // on the shared clock
	machine                  machine
	gateway, harness         time.Duration // CPU time so far
	postgres, redis          time.Duration
	waits, waited            float64 // of all pools so far: acquisitions that waited, seconds
	lockMS, idleMS           float64
	xminAge                  int64
	backlog, streams         int64
	inflight                 int64
	goroutines               int64
	gatewayRSS, gatewayFiles int64
	harnessRSS, harnessFiles int64
	redisMemory              int64
}

// sampler looks at everything once a second. What it cannot read it counts as
// missed: a run does not fail because its observer was late.
type sampler struct {
	clock   *simclock.Clock
	conn    *pgx.Conn
	rdb     *redis.Client
	http    *http.Client
	url     string // of the gateway's metrics
	gateway *life
	pids    pids
	// dial makes another connection when conn was lost.
	dial func(context.Context) (*pgx.Conn, error)
	// look, when set, is shown the database every second.
	look    func(context.Context, *pgx.Conn) error
	submits func() int64 // unanswered at the suppliers

	seconds []second
	books   []verify.Sample
	missed  int
}

// pids are the processes of a run; 0 is not known.
type pids struct{ postgres, redis, harness int }

// run samples until ctx is done; then the fields may be read.
func (s *sampler) run(ctx context.Context, every time.Duration, then func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = s.conn.Close(end) // nothing is lost with it
	}()
	for {
		s.sample(ctx)
		then()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *sampler) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	x := second{at: s.clock.Now(), inflight: s.submits()}
	x.machine, _ = readMachine()
	pid, used := s.gateway.pid()
	x.postgres, x.redis, x.harness = s.pids.cpu()
	x.gateway = used + cpuTime(pid, false)
	x.gatewayRSS, x.gatewayFiles = footprint(pid)
	x.harnessRSS, x.harnessFiles = footprint(s.pids.harness)
	if m, err := scrape(ctx, s.http, s.url); err != nil {
		s.missed++
	} else {
		x.waits, x.waited = m.sum("cmppgw_pg_pool_waits_total"), m.sum("cmppgw_pg_pool_wait_seconds_total")
		x.backlog = int64(m.sum("cmppgw_event_backlog"))
		x.goroutines = int64(m.sum("go_goroutines"))
	}
	s.database(ctx, &x)
	if n, err := streamEntries(ctx, s.rdb); err != nil {
		s.missed++
	} else {
		x.streams = n
	}
	x.redisMemory = redisInfo(ctx, s.rdb, "memory", "used_memory_peak")
	s.seconds = append(s.seconds, x)
}

// database looks at PostgreSQL, with another connection when the last was lost.
func (s *sampler) database(ctx context.Context, x *second) {
	if s.conn.IsClosed() {
		conn, err := s.dial(ctx)
		if err != nil {
			s.missed++
			return
		}
		s.conn = conn
	}
	if books, err := verify.Books(ctx, s.conn); err != nil {
		s.missed++
	} else {
		s.books = append(s.books, books...)
	}
	if err := s.conn.QueryRow(ctx, activitySQL).Scan(&x.lockMS, &x.idleMS, &x.xminAge); err != nil {
		s.missed++
	}
	if s.look != nil && s.look(ctx, s.conn) != nil {
		s.missed++
	}
}

// cpu is the CPU time so far of each process; 0 of one that is not known.
func (p pids) cpu() (postgres, redis, harness time.Duration) {
	return cpuTime(p.postgres, true), cpuTime(p.redis, false), cpuTime(p.harness, false)
}

func cpuTime(pid int, tree bool) time.Duration {
	if pid == 0 {
		return 0
	}
	d, _ := cpuOf(pid, tree)
	return d
}

// streamEntries counts the entries of every stream of the gateway.
func streamEntries(ctx context.Context, rdb *redis.Client) (int64, error) {
	total := int64(0)
	scan := rdb.ScanType(ctx, 0, "*", 1000, "stream").Iterator()
	for scan.Next(ctx) {
		n, err := rdb.XLen(ctx, scan.Val()).Result()
		if err != nil {
			return 0, fmt.Errorf("length of stream %s: %w", scan.Val(), err)
		}
		total += n
	}
	if err := scan.Err(); err != nil {
		return 0, fmt.Errorf("list the streams: %w", err)
	}
	return total, nil
}

// redisInfo is one number of INFO; 0 when it cannot be read.
func redisInfo(ctx context.Context, rdb *redis.Client, section, name string) int64 {
	text, err := rdb.Info(ctx, section).Result()
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(text, "\n") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			var n int64
			if _, err := fmt.Sscan(v, &n); err == nil {
				return n
			}
		}
	}
	return 0
}

// counters are running totals; two readings give the cost of what was between.
type counters struct {
	at                       int64
	gateway, postgres, redis time.Duration
	harness                  time.Duration
	commits, wal, statements int64
	commands                 int64
	metrics                  metrics
	tables                   map[string]share
	slow                     int64
	slowest                  string
	slowestMean              float64
	hasStatements            bool
}

// share is how many of all were of a kind.
type share struct{ all, of int64 }

// count reads the totals. Statements are there only with pg_stat_statements.
func (s *sampler) count(ctx context.Context, conn *pgx.Conn) (c counters, err error) {
	c.at = s.clock.Now()
	pid, used := s.gateway.pid()
	c.gateway = used + cpuTime(pid, false)
	c.postgres, c.redis, c.harness = s.pids.cpu()
	if c.metrics, err = scrape(ctx, s.http, s.url); err != nil {
		return c, err
	}
	if err := conn.QueryRow(ctx, countersSQL).Scan(&c.commits, &c.wal); err != nil {
		return c, fmt.Errorf("read PostgreSQL's counters: %w", err)
	}
	c.hasStatements = conn.QueryRow(ctx, statementsSQL).Scan(&c.statements, &c.slow, &c.slowest, &c.slowestMean) == nil
	c.commands = redisInfo(ctx, s.rdb, "stats", "total_commands_processed")
	rows, err := conn.Query(ctx, tablesSQL)
	if err != nil {
		return c, fmt.Errorf("read PostgreSQL's tables: %w", err)
	}
	defer rows.Close()
	c.tables = map[string]share{}
	for rows.Next() {
		var name string
		var x share
		if err := rows.Scan(&name, &x.all, &x.of); err != nil {
			return c, fmt.Errorf("read PostgreSQL's tables: %w", err)
		}
		c.tables[name] = x
	}
	return c, rows.Err()
}

// statement is one kind of statement with what it has cost.
type statement struct {
	Query   string  `json:"query"`
	Calls   int64   `json:"calls"`
	TotalMS float64 `json:"total_ms"`
	MaxMS   float64 `json:"max_ms"`
	Rows    int64   `json:"rows"`
}

// costly lists the kinds of statement that cost most; nothing without
// pg_stat_statements.
func costly(ctx context.Context, conn *pgx.Conn) []statement {
	rows, err := conn.Query(ctx, costlySQL)
	if err != nil {
		return nil
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s statement, err error) {
		err = row.Scan(&s.Query, &s.Calls, &s.TotalMS, &s.MaxMS, &s.Rows)
		return s, err
	})
	if err != nil {
		return nil
	}
	return list
}
