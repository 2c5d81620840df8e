// Package wake carries nudges between goroutines and processes: "there may be rows for you". A nudge is never data and may
// be lost; whoever waits for one also polls. Within the process it is direct, to other processes it goes over Redis PubSub.
//
// It imports go-redis only. Its goroutines belong to Run, which waits for them and stops with its context.
package wake
