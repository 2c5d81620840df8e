package settlement

import "context"

// Each is one round of a loop of Run.
func (s *Settlement) Settle(ctx context.Context) error { return s.settle(ctx) }
func (s *Settlement) Parked(ctx context.Context) error { return s.parked(ctx) }
func (s *Settlement) Sweep(ctx context.Context) error  { return s.sweep(ctx) }
