package simclock

import "time"

// Clock counts nanoseconds since its base on the process's monotonic clock.
// The zero value is not usable; make one with New. Safe for concurrent use.
type Clock struct {
	base time.Time
}

// New returns a clock whose zero is now.
func New() *Clock {
	return &Clock{base: time.Now()}
}

// Now returns the nanoseconds since the base; it never goes backwards.
func (c *Clock) Now() int64 {
	return int64(time.Since(c.base))
}

// Base returns the moment of zero, wall clock included.
func (c *Clock) Base() time.Time {
	return c.base
}

// Time converts a reading of Now back to a wall-clock time.
func (c *Clock) Time(ns int64) time.Time {
	return c.base.Add(time.Duration(ns))
}

// Until returns how long it is from now to the reading ns, 0 if it has passed.
func (c *Clock) Until(ns int64) time.Duration {
	return max(0, time.Duration(ns-c.Now()))
}
