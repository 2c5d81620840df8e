package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/testenv"
)

// zoned are what reads a time in the zone of the session, and so differently on differently set servers (P12). China has no
// summer time: its days are AT TIME ZONE interval '8 hours', which needs no zone database either.
var zoned = []struct {
	what  string
	found *regexp.Regexp
	fine  *regexp.Regexp // at the place of what was found
}{
	{"the session's day or time", regexp.MustCompile(`\b(?:current_date|current_time|localtime|localtimestamp|timeofday|date_trunc|date_part|date_bin|to_char|to_timestamp|make_timestamp|make_timestamptz)\b`), nil},
	{"an age by the session's day", regexp.MustCompile(`\bage\s*\(\s*[\w.]+`), regexp.MustCompile(`x(min|max|id)$`)},
	{"a clock that tests cannot stop", regexp.MustCompile(`\bcurrent_timestamp\b`), nil},
	{"a part of a time", regexp.MustCompile(`\bextract\s*\(\s*\w+`), regexp.MustCompile(`^extract\s*\(\s*epoch$`)},
	{"a day of an unnamed zone", regexp.MustCompile(`(\$\d+|\bday|\S+)\s*::\s*date\b`), regexp.MustCompile(`^(\$\d+|day|hours'\))\s*::\s*date$`)},
	{"a cast to a date", regexp.MustCompile(`\bcast\s*\([^()]*(\([^()]*\)[^()]*)*\bas\s+(date|time|timestamp)\b`), nil},
	{"a time without a zone", regexp.MustCompile(`(::\s*|\s)(time|timestamp)\b( with time zone)?`), regexp.MustCompile(`(with|at) time zone$|^\s*time$`)},
	{"another zone", regexp.MustCompile(`at\s+time\s+zone\s+(\S+\s+)?'[^']*'`), regexp.MustCompile(`^at\s+time\s+zone\s+interval\s+'8 hours'$`)},
	{"days of the session's calendar", regexp.MustCompile(`interval\s*'[^']*\b(day|week|mon|month|year)s?\b[^']*'`), nil},
}

// leases are compared with PostgreSQL's clock as it is, not as it was when a transaction began that then waited.
var (
	leaseCompared = regexp.MustCompile(`\blease(_until)?\b[^<>=\n]{0,40}(?:<=|>=|<>|<|>)\s*(\S+)`)
	leaseBehind   = regexp.MustCompile(`(\S+)\s*(?:<=|>=|<>|<|>)\s*(?:\w+\.)?lease(?:_until)?\b`)
	leaseSet      = regexp.MustCompile(`\blease(_until)?\s*=\s*([^\s,]+)`)
	leaseGiven    = regexp.MustCompile(`^(clock_timestamp\(\)|null|least\(l\.lease_until|excluded\.lease_until)`)
	comment       = regexp.MustCompile(`--[^\n]*`)
)

func clockFaults(sql string) (faults []string) {
	sql = strings.ToLower(comment.ReplaceAllString(sql, ""))
	for _, z := range zoned {
		for _, s := range z.found.FindAllString(sql, -1) {
			if z.fine == nil || !z.fine.MatchString(s) {
				faults = append(faults, z.what+": "+s)
			}
		}
	}
	for _, m := range leaseCompared.FindAllStringSubmatch(sql, -1) {
		if !strings.HasPrefix(m[2], "clock_timestamp()") {
			faults = append(faults, "a lease is judged by another clock: "+m[0])
		}
	}
	for _, m := range leaseBehind.FindAllStringSubmatch(sql, -1) {
		if !strings.HasSuffix(m[1], "clock_timestamp()") {
			faults = append(faults, "a lease is judged by another clock: "+m[0])
		}
	}
	for _, m := range leaseSet.FindAllStringSubmatch(sql, -1) {
		if !leaseGiven.MatchString(m[2]) {
			faults = append(faults, "a lease ends by another clock: "+m[0])
		}
	}
	return faults
}

func TestStatementsKnowNoZone(t *testing.T) {
	t.Parallel()
	read := 0
	for _, root := range []string{"../..", "../../../scenarios", "../../../simulator"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".sql" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			for _, f := range clockFaults(string(text)) {
				t.Errorf("%s: %s", path, f)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 100 {
		t.Errorf("%d files read", read)
	}
}

func TestZonedStatementsAreSeen(t *testing.T) {
	t.Parallel()
	for sql, faulty := range map[string]bool{
		"SELECT current_date": true, "SELECT now()::date": true, "SELECT at::date FROM x": true, "SELECT (now() AT TIME ZONE 'UTC')::date": true,
		"SELECT (now() AT TIME ZONE interval '8 hours')::date": false, "SELECT $1::date": false, "SELECT CAST(now() AS date)": true,
		"SELECT date_trunc('day', now())": true, "SELECT extract(hour FROM now())": true, "SELECT extract(epoch FROM now())": false,
		"SELECT now()::timestamp": true, "SELECT now() - interval '1 day'": true, "SELECT now() - interval '24 hours'": false, "SELECT localtimestamp": true, "SELECT age(at)": true, "SELECT age(backend_xmin)": false,
		"UPDATE x SET lease = now() + $1::interval": true, "SELECT 1 WHERE lease_until > now()": true, "SELECT 1 WHERE lease < $1": true,
		"SELECT 1 WHERE now() > l.lease_until": true, "SELECT 1 WHERE least(l.lease_until, l.down_since) < now()": true, "SELECT make_interval(1), agent(1)": false,
		"SELECT 1 WHERE lease < clock_timestamp()": false, "UPDATE x SET lease_until = clock_timestamp() + $1::interval": false, "SELECT now()::timestamptz -- current_date": false,
	} {
		if got := clockFaults(sql); (len(got) > 0) != faulty {
			t.Errorf("%s: %q", sql, got)
		}
	}
}

// A lease ends after its time, be there a midnight of China or of UTC in between, and not before.
func TestLeasesOverMidnight(t *testing.T) {
	t.Parallel()
	url := testenv.DB(t)
	clock := testenv.StopClock(t, url)
	p := open(t, func(c *config.Postgres) { c.URL = url })
	pool := testenv.ZonePool(t, p.Admin)
	adopter := lease(t, pool, 90*24*time.Hour)
	day := time.Now().UTC().Truncate(24 * time.Hour)
	for _, midnight := range []time.Time{day.Add(16 * time.Hour), day.Add(24 * time.Hour)} {
		clock.Set(midnight.Add(-time.Second))
		dead := lease(t, pool, 2*time.Second)
		for want, at := range []time.Duration{time.Second, time.Second + time.Microsecond} { // dead: none, one
			clock.Set(midnight.Add(at))
			adopter.Age(90 * 24 * time.Hour)
			got, err := adopter.DeadNodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != want || want == 1 && got[0].Number != dead.Number {
				t.Errorf("%s after %s: %v are dead, want %d", at, midnight, got, want)
			}
			if want == 0 {
				continue
			}
			if err := adopter.Adopted(t.Context(), got[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The zone of the process is asked for nowhere.
func TestProgramsKnowNoLocalZone(t *testing.T) {
	t.Parallel()
	local := regexp.MustCompile(`\btime\.Local\b|\.Local\(\)`)
	for _, root := range []string{"../../../gateway", "../../../simulator", "../../../scenarios", "../../../reports", "../../../chaos"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && local.Match(text) {
				t.Errorf("%s: %s", path, local.Find(text))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever the zone of the process and of the server, times are read as UTC.
func TestTimesAreReadInUTC(t *testing.T) {
	t.Parallel()
	p := open(t)
	for _, n := range p.All() {
		pool := testenv.ZonePool(t, n.Pool)
		var at time.Time
		var list []time.Time
		if err := pool.QueryRow(t.Context(), `SELECT clock_timestamp(), ARRAY[clock_timestamp()]`).Scan(&at, &list); err != nil {
			t.Fatal(err)
		}
		if at.Location() != time.UTC || list[0].Location() != time.UTC {
			t.Errorf("pool %s: times in %s and %s", n.Name, at.Location(), list[0].Location())
		}
	}
}
