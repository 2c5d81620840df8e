package inbound

import "time"

// ParseTime lets the table test reach the parser.
var ParseTime = parseTime

// SetClock is the clock of login back-off and rates; before Run.
func SetClock(s *Server, now func() time.Time) { s.now = now }
