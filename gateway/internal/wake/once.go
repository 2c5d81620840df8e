package wake

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Once nudges the processes that run, from a program that has no bus: a command of an operator. An error means that they look
// at their next poll.
func Once(ctx context.Context, rdb *redis.Client, topics ...string) error {
	self := rand.Text()
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, topic := range topics {
			p.Publish(ctx, channel, self+" "+topic)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("nudge: %w", err)
	}
	return nil
}
