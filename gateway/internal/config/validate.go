package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Fault is one thing wrong with the configuration.
type Fault struct {
	File  string // "" when the value comes from the environment or the defaults
	Line  int    // 0 without a file
	Path  string
	Value string
	Want  string
}

// String is one line.
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	}
	b.WriteString(f.Path)
	if f.Value != "" {
		fmt.Fprintf(&b, " is %s", f.Value)
	}
	fmt.Fprintf(&b, ": %s", f.Want)
	return b.String()
}

// FaultsError is every fault of a configuration.
type FaultsError []Fault

// Error is one line a fault.
func (f FaultsError) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// Validate reports every value out of its range and every pair of values that contradict each other, as FaultsError.
func (c Config) Validate() error {
	var faults FaultsError
	for _, f := range fields(&c) {
		if want := f.check(); want != "" {
			faults = append(faults, Fault{Path: f.path, Value: fmt.Sprint(f.shown()), Want: want})
		}
	}
	faults = append(faults, c.relations()...)
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// check is what is wanted, or "".
func (f field) check() string {
	lo, hi, isRange := strings.Cut(f.allow, "..")
	switch {
	case f.value.Kind() == reflect.Bool, f.allow == "any":
		return ""
	case f.allow == "host:port":
		if !hostPort(f.value.String()) {
			return "want host:port"
		}
		return ""
	case f.value.Type() == durationType:
		if isRange && inRange[time.Duration](f.value.Interface().(time.Duration).String(), lo, hi, time.ParseDuration) {
			return ""
		}
	case isRange:
		if inRange[int64](fmt.Sprint(f.value.Interface()), lo, hi, parseInt) {
			return ""
		}
	default:
		for word := range strings.SplitSeq(f.allow, "|") {
			if f.value.String() == word {
				return ""
			}
		}
	}
	return "allowed " + f.allow
}

func hostPort(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && inRange[uint64](port, "0", "65535", parseUint)
}

func parseInt(s string) (int64, error)   { return strconv.ParseInt(s, 10, 64) }
func parseUint(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }

func inRange[T cmp.Ordered](value, lo, hi string, parse func(string) (T, error)) bool {
	v, err := parse(value)
	l, errLo := parse(lo)
	h, errHi := parse(hi)
	return err == nil && errLo == nil && errHi == nil && l <= v && v <= h
}

// loopback says whether only this machine reaches addr. A faulty address is reported elsewhere.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip, parseErr := netip.ParseAddr(host)
	return err != nil || host == "localhost" || parseErr == nil && ip.IsLoopback()
}

// relations are the rules between two settings.
func (c Config) relations() (faults FaultsError) {
	wrong := func(bad bool, path string, value any, want string) {
		if bad {
			faults = append(faults, Fault{Path: path, Value: fmt.Sprint(value), Want: want})
		}
	}
	most := func(path string, v int, limitPath string, limit int) {
		wrong(v > limit, path, v, fmt.Sprintf("allowed up to %s (%d)", limitPath, limit))
	}
	atMost := func(path string, v time.Duration, limitPath string, limit time.Duration) {
		wrong(v > limit, path, v, fmt.Sprintf("allowed up to %s (%s)", limitPath, limit))
	}
	below := func(path string, v time.Duration, limitPath string, limit time.Duration) {
		wrong(v >= limit, path, v, fmt.Sprintf("must be less than %s (%s)", limitPath, limit))
	}

	wrong(c.Postgres.URL == "", "postgres.url", `""`, "set it, or DATABASE_URL")
	wrong(c.Redis.URL == "" && c.Redis.Host == "", "redis.host", `""`, "set it, or REDIS_HOST, or REDIS_URL")
	if c.Redis.URL != "" {
		u, err := url.Parse(c.Redis.URL)
		wrong(err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix", "redis.url", "no such URL", "want redis://[:password@]host:port/db")
	}
	if c.Event.URL != "" {
		u, err := url.Parse(c.Event.URL)
		wrong(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "", "event.url", c.Event.URL, "want http://host:port")
	}
	// Whoever reaches the callback moves messages and money; whoever reaches the admin API reads the settings.
	wrong(c.Callback.Token == "" && c.Callback.TLSClientCA == "" && !loopback(c.Callback.Listen), "callback.token", `""`, "needed when callback.listen is not on loopback, or callback.tls_client_ca")
	wrong((c.Callback.TLSCert == "") != (c.Callback.TLSKey == ""), "callback.tls_key", c.Callback.TLSKey, "callback.tls_cert and tls_key belong together")
	wrong(c.Callback.TLSClientCA != "" && c.Callback.TLSCert == "", "callback.tls_cert", `""`, "needed with callback.tls_client_ca")
	wrong((c.Event.TLSCert == "") != (c.Event.TLSKey == ""), "event.tls_key", c.Event.TLSKey, "event.tls_cert and tls_key belong together")
	wrong(c.Callback.TLSCert != "" && c.Event.URL == "", "event.url", `""`, "needed with callback.tls_cert: https and the name in the certificate")
	wrong(c.Admin.Token == "" && !loopback(c.Admin.Listen), "admin.token", `""`, "needed when admin.listen is not on loopback")
	wrong(c.Admin.TLSCert == "" && !c.Admin.PlainText && !loopback(c.Admin.Listen), "admin.listen", c.Admin.Listen, "beyond loopback it needs admin.tls_cert, or admin.plain_text: true where something in front speaks TLS")
	wrong((c.Admin.TLSCert == "") != (c.Admin.TLSKey == ""), "admin.tls_key", c.Admin.TLSKey, "admin.tls_cert and tls_key belong together")
	most("inbound.max_unauthenticated", c.Inbound.MaxUnauthenticated, "inbound.max_connections", c.Inbound.MaxConnections)
	below("inbound.probe_timeout", c.Inbound.ProbeTimeout, "inbound.login_timeout", c.Inbound.LoginTimeout)
	atMost("inbound.login_backoff", c.Inbound.LoginBackoff, "inbound.login_backoff_max", c.Inbound.LoginBackoffMax)
	if c.Inbound.TLSListen != "" {
		wrong(!hostPort(c.Inbound.TLSListen), "inbound.tls_listen", c.Inbound.TLSListen, "want host:port")
		wrong(c.Inbound.TLSListen == c.Inbound.Listen && !strings.HasSuffix(c.Inbound.Listen, ":0"), "inbound.tls_listen", c.Inbound.TLSListen, "want another address than inbound.listen")
		wrong(c.Inbound.TLSCert == "", "inbound.tls_cert", `""`, "needed with inbound.tls_listen")
		wrong(c.Inbound.TLSKey == "", "inbound.tls_key", `""`, "needed with inbound.tls_listen")
	}
	most("inbound.batch_max", c.Inbound.BatchMax, "inbound.queue_max", c.Inbound.QueueMax)
	most("workflow.batch_target", c.Workflow.BatchTarget, "workflow.batch_max", c.Workflow.BatchMax)
	atMost("supplier.reconnect_min", c.Supplier.ReconnectMin, "supplier.reconnect_max", c.Supplier.ReconnectMax)
	most("event.batch_target", c.Event.BatchTarget, "event.batch_max", c.Event.BatchMax)
	most("event.bytes_max", c.Event.BytesMax, "event.retain_bytes", c.Event.RetainBytes)
	atMost("event.retry_min", c.Event.RetryMin, "event.retry_max", c.Event.RetryMax)
	// The server gives up first: a request that the client abandons must not go on beside its repetition (data §1.14).
	below("callback.request_deadline", c.Callback.RequestDeadline, "event.timeout", c.Event.Timeout)
	below("callback.statement_timeout", c.Callback.StatementTimeout, "callback.request_deadline", c.Callback.RequestDeadline)
	// The client drops idle connections first, or it writes into one that the server is closing.
	below("event.idle_timeout", c.Event.IdleTimeout, "callback.idle_timeout", c.Callback.IdleTimeout)
	below("callback.idle_timeout", c.Callback.IdleTimeout, "callback.header_timeout", c.Callback.HeaderTimeout)
	atMost("settlement.unknown_after", c.Settlement.UnknownAfter, "settlement.park_max", c.Settlement.ParkMax)
	atMost("uplink.segment_doubt", c.Uplink.SegmentDoubt, "uplink.segment_expiry", c.Uplink.SegmentExpiry)
	atMost("delivery.merge", c.Delivery.Merge, "delivery.merge_cap", c.Delivery.MergeCap)
	below("delivery.ack_timeout", c.Delivery.AckTimeout, "delivery.lease", c.Delivery.Lease)
	atMost("shutdown.drain", c.Shutdown.Drain, "shutdown.total", c.Shutdown.Total)
	return faults
}
