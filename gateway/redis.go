package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"cmppgateway/gateway/internal/config"
)

// openRedis makes the client; it connects when first used.
func openRedis(c config.Redis, log *slog.Logger) (*redis.Client, error) {
	o := &redis.Options{Addr: net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), Password: c.Password, DB: c.DB}
	if c.URL != "" {
		var err error
		if o, err = redis.ParseURL(c.URL); err != nil {
			return nil, fmt.Errorf("redis.url: %w", err)
		}
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, c.Timeout, c.Timeout, c.Timeout
	o.ContextTimeoutEnabled = true
	o.MaxRetries = 1 // whoever asks has a way round Redis: a late answer is worth less than none
	o.DialerRetries = 1
	o.ClientName = "cmppgw"
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	redis.SetLogger(redisLog{log})
	return redis.NewClient(o), nil
}

// redisLog takes the client's own remarks, about reconnecting mostly; who asked for something gets the error itself.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "redis client", slog.String("remark", fmt.Sprintf(format, v...)))
}
