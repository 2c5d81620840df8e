package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
)

var (
	// ErrLeaseLost says that another process took this one's node number: it must stop at once.
	ErrLeaseLost = errors.New("node lease lost to another process")
	// ErrNoNode says that all 255 node numbers are held or wait for adoption.
	ErrNoNode = errors.New("no node number is free")
	// ErrNotDrained says that a dead node still has rows that its process may have written to a supplier.
	ErrNotDrained = errors.New("node has dispatched rows")
)

// Node is the identity a process holds by its lease in PostgreSQL: the number is in every id it issues, on every row it
// dispatches and in the name of its event shard. Safe for concurrent use.
type Node struct {
	Number int16
	Epoch  int64 // raised whenever the number changes hands
	IDs    *message.IDs
	MsgIDs *MsgIDs

	pool     *pgxpool.Pool
	lease    time.Duration
	log      *slog.Logger
	mu       sync.Mutex
	adopting map[int16]int64 // nodes that this one adopts, with their epochs; renewed along with the own lease
	renewed  time.Time       // last renewal
	steady   time.Time       // since when the renewals follow each other without a gap
}

// DeadNode is a node whose lease ran out, claimed by the node that asked.
type DeadNode struct {
	Number int16
	Epoch  int64
}

// LeaseNode takes the lowest clean node number, or one never used. It does not take a number whose process died until it
// was adopted. Ids start after the time found on the lease and stay before the time written to it, so none comes twice,
// whatever happened to the process before or to the clock (data §1.13).
func LeaseNode(ctx context.Context, pool *pgxpool.Pool, c config.Node, log *slog.Logger) (*Node, error) {
	n := &Node{pool: pool, lease: c.Lease, log: log, adopting: make(map[int16]int64)}
	instance := uuid()
	name := c.Name
	if name == "" {
		name, _ = os.Hostname() // the name is for people; '' serves
	}
	name = fmt.Sprintf("%s pid %d", name, os.Getpid())
	process := processName()
	var after, until time.Time
	err := Retry(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, NodeLock); err != nil {
			return err
		}
		now := time.Now()
		err := tx.QueryRow(ctx, NodeFree, now.Add(c.Lease)).Scan(&n.Number, &after)
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, NodeNew, now).Scan(&n.Number, &after)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoNode
		}
		if err != nil {
			return err
		}
		until = later(now, after).Add(c.Lease)
		return tx.QueryRow(ctx, NodeTake, n.Number, instance, until, c.Lease, name, process).Scan(&n.Epoch)
	})
	if err != nil {
		return nil, fmt.Errorf("lease a node number: %w", err)
	}
	if err := n.bury(ctx, process); err != nil {
		return nil, fmt.Errorf("lease a node number: %w", err)
	}
	n.renewed = time.Now()
	n.steady = n.renewed
	n.IDs = message.NewIDs(n.Number, after, until, time.Now)
	n.MsgIDs = newMsgIDs(c.GatewayCode+uint32(n.Number), after, until)
	log.Info("node number leased", slog.Int("node", int(n.Number)), slog.Int64("epoch", n.Epoch))
	return n, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// uuid is a random one, version 4. crypto/rand never fails.
func uuid() (u [16]byte) {
	_, _ = rand.Read(u[:]) // documented to never fail
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}

// Run renews the lease at a third of it until ctx is done, which is no error. It returns ErrLeaseLost when the number was
// taken. Without PostgreSQL it keeps trying: then ids run out before the lease does, and callers wait for them.
func (n *Node) Run(ctx context.Context) error {
	tick := time.NewTicker(n.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := n.renew(ctx)
		switch {
		case errors.Is(err, ErrLeaseLost):
			return err
		case err != nil && ctx.Err() == nil:
			n.log.Warn("node lease not renewed", slog.Int("node", int(n.Number)), slog.Any("error", err))
		}
	}
}

func (n *Node) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.lease/2)
	defer cancel()
	nodes, epochs := []int16{n.Number}, []int64{n.Epoch}
	n.mu.Lock()
	for node, epoch := range n.adopting {
		nodes, epochs = append(nodes, node), append(epochs, epoch)
	}
	n.mu.Unlock()
	until := time.Now().Add(n.lease)
	rows, err := n.pool.Query(ctx, NodeRenew, nodes, epochs, n.lease, n.Number, until)
	if err != nil {
		return err
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[int16])
	if err != nil {
		return err
	}
	held := make(map[int16]bool, len(kept))
	for _, node := range kept {
		held[node] = true
	}
	if !held[n.Number] {
		return ErrLeaseLost
	}
	n.mu.Lock()
	for i, node := range nodes {
		if n.adopting[node] == epochs[i] && !held[node] {
			delete(n.adopting, node) // taken over by another adopter
		}
	}
	now := time.Now()
	if now.Sub(n.renewed) > n.lease*2/3 {
		n.steady = now
	}
	n.renewed = now
	n.mu.Unlock()
	n.IDs.Extend(until)
	n.MsgIDs.extend(until)
	return nil
}

// Healthy says whether the lease was renewed in time.
func (n *Node) Healthy() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.renewed) < n.lease
}

// DeadNodes claims the nodes whose lease ran out, for adoption; the claim is renewed along with the own lease. After an
// outage of PostgreSQL every lease has run out: therefore a node claims only after it renewed its own for a whole lease
// without a gap, a time in which every living process has renewed too.
func (n *Node) DeadNodes(ctx context.Context) ([]DeadNode, error) {
	n.mu.Lock()
	now := time.Now()
	ready := now.Sub(n.steady) >= n.lease && now.Sub(n.renewed) <= n.lease*2/3
	n.mu.Unlock()
	if !ready {
		return nil, nil
	}
	rows, err := n.pool.Query(ctx, NodeDead, n.Number, n.Epoch, n.lease)
	if err != nil {
		return nil, fmt.Errorf("claim dead nodes: %w", err)
	}
	dead, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DeadNode])
	if err != nil {
		return nil, fmt.Errorf("claim dead nodes: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range dead {
		n.adopting[d.Number] = d.Epoch
		n.log.Info("dead node claimed", slog.Int("node", int(d.Number)), slog.Int64("epoch", d.Epoch))
	}
	return dead, nil
}

// Adopted frees the number of d for a new process. Its event shard must be drained; while it still has dispatched rows the
// answer is ErrNotDrained, and ErrLeaseLost when another node has taken the adoption over.
func (n *Node) Adopted(ctx context.Context, d DeadNode) error {
	freed, err := n.free(ctx, d, nil)
	if err != nil {
		return fmt.Errorf("free node %d: %w", d.Number, err)
	}
	n.mu.Lock()
	delete(n.adopting, d.Number)
	n.mu.Unlock()
	if !freed {
		return fmt.Errorf("free node %d: %w", d.Number, ErrLeaseLost)
	}
	n.log.Info("dead node adopted", slog.Int("node", int(d.Number)))
	return nil
}

// Release gives the number back at the end of a graceful stop, when Run has returned and nothing asks for ids any more.
// drained says that the node's event shard is empty. With events or dispatched rows left the number is not freed: the lease
// ends now and another process, or the next start, adopts it.
func (n *Node) Release(ctx context.Context, drained bool) error {
	if drained {
		last, err := n.lastUsed(ctx)
		if err != nil {
			return fmt.Errorf("release node %d: %w", n.Number, err)
		}
		_, err = n.free(ctx, DeadNode{n.Number, n.Epoch}, &last)
		if !errors.Is(err, ErrNotDrained) {
			if err != nil {
				return fmt.Errorf("release node %d: %w", n.Number, err)
			}
			return nil
		}
	}
	if _, err := n.pool.Exec(ctx, NodeLeave, n.Number, n.Epoch); err != nil {
		return fmt.Errorf("leave node %d: %w", n.Number, err)
	}
	return nil
}

// lastUsed is a time that no issued id is later than: the next owner starts near the clock, not a lease ahead of it.
func (n *Node) lastUsed(ctx context.Context) (time.Time, error) {
	id, err := n.IDs.Next(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return later(message.TimeOf(id).Add(time.Millisecond), n.MsgIDs.last()), nil
}

func (n *Node) free(ctx context.Context, d DeadNode, last *time.Time) (freed bool, err error) {
	err = Retry(ctx, n.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, NodeLock); err != nil {
			return err
		}
		var dispatched bool
		if err := tx.QueryRow(ctx, NodeDispatched, d.Number).Scan(&dispatched); err != nil {
			return err
		}
		if dispatched {
			return ErrNotDrained
		}
		tag, err := tx.Exec(ctx, NodeFreeUp, d.Number, d.Epoch, last)
		freed = tag.RowsAffected() == 1
		if err != nil || !freed {
			return err
		}
		// Deliveries it had claimed are another's to make now, not only when their leases end.
		_, err = tx.Exec(ctx, DeliveryFree, d.Number)
		return err
	})
	return freed, err
}
