// Package store is the gateway's side of PostgreSQL: migrations, connection pools, transactions, partitions, and the node
// lease from which ids and customer Msg_Ids come. It holds every SQL statement of the gateway: one a file in queries/,
// embedded by the queries_<role>.go of the package that runs it.
//
// It imports pgx, goose, and of this module only cmpp, config and message. Open starts no goroutine besides those of the
// pools, which Close ends; Node.Run is a goroutine of its caller and stops with its context.
package store
