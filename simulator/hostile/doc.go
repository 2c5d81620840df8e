// Package hostile opens connections to a CMPP server that no customer would:
// garbage, other protocols, lengths that cannot be, half frames, logins that are
// wrong, and silence, each again as soon as it is cut off. It keeps count of what
// the server did about it.
//
// It imports nothing of the module. Run owns one goroutine per connection; all end
// with it.
package hostile
