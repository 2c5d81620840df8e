package inbound

// ParseTime lets the table test reach the parser.
var ParseTime = parseTime
