package store

import (
	"context"
	"time"
)

// NewMsgIDs and Extend let tests run the issuer without a lease, Renew a renewal at a time of their choice.
func NewMsgIDs(code uint32, after, until time.Time) *MsgIDs { return newMsgIDs(code, after, until) }

func (m *MsgIDs) Extend(until time.Time) { m.extend(until) }

func (n *Node) Renew(ctx context.Context) error { return n.renew(ctx) }

// Age moves the beginning of the unbroken renewals back, as if they had gone on for d longer.
func (n *Node) Age(d time.Duration) { n.steady = n.steady.Add(-d) }

// ProcessName is how this process is named on its lease.
func ProcessName() string { return processName() }
