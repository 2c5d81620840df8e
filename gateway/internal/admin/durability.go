package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/store"
)

// Durability is what a commit in PostgreSQL and an entry in Redis are worth, seen from the gateway's own sessions.
type Durability struct {
	Fsync             string    `json:"fsync"`
	SynchronousCommit string    `json:"synchronous_commit"`
	FullPageWrites    string    `json:"full_page_writes"`
	Clock             time.Time `json:"clock"`
}

// Postgres asks one session of pool.
func Postgres(ctx context.Context, pool *pgxpool.Pool) (d Durability, err error) {
	err = pool.QueryRow(ctx, store.AdminDurability).Scan(&d.Fsync, &d.SynchronousCommit, &d.FullPageWrites, &d.Clock)
	if err != nil {
		return d, fmt.Errorf("postgres settings: %w", err)
	}
	return d, nil
}

// Redis is the settings of the server that decide what survives, by name: maxmemory-policy, appendonly and appendfsync.
func Redis(ctx context.Context, rdb *redis.Client) (map[string]string, error) {
	settings := make(map[string]string)
	for _, name := range []string{"maxmemory-policy", "appendonly", "appendfsync"} {
		got, err := rdb.ConfigGet(ctx, name).Result()
		if err != nil {
			return nil, fmt.Errorf("redis settings: %w", err)
		}
		settings[name] = got[name]
	}
	return settings, nil
}
