// Package inbound is the customers' CMPP server: logins, field checks, and the inbox that makes a SUBMIT durable before it
// is answered (architecture §2 P1, §3.1; data §1.13, T1).
//
// # From SUBMIT to SUBMIT_RESP
//
//	reader   checks the fields; a fault, a bound or a stop is answered at once
//	queue    at most Config.QueueMax SUBMITs, beyond: result 8
//	commit   takes what is there (at most Config.BatchMax), gives ids and Msg_Ids, one INSERT, which is its own transaction
//	answer   result 0 is queued for the session's writer only after PostgreSQL said that the transaction is committed
//
// Batches are natural: a SUBMIT that finds the committer idle is committed alone and at once; what arrives during a commit
// is the next batch. There is one commit at a time, so ids ascend in the order in which SUBMITs were read.
//
// A commit without an answer (the connection broke, time ran out) may have happened. The same rows are then offered again
// until PostgreSQL answers. The repeated transaction inserts those that are missing and takes out again those that the
// workflow has already turned into messages. Nothing is answered meanwhile; after Config.CommitDeadline the connections
// are closed without an answer, because a refusal would make the customer send again what is stored.
//
// # Bounds
//
//	connections in all          Config.MaxConnections; beyond: CONNECT status 5 (or 55)
//	connections not logged in   Config.MaxUnauthenticated; beyond, the oldest is closed if it had a second, else the new one
//	connections of an account   application.max_connections; beyond, links that give no sign of life are closed, else status 5 (or 56)
//	failed logins               see guard; during a wait: status 5
//	unanswered SUBMITs          application.window_size for each connection; beyond: result 8
//	messages a second           of connection, application, enterprise and platform, see rates; beyond: result 8
//	SUBMITs not committed       Config.QueueMax; beyond: result 8
//	rows that wait              of application, platform and channels, counted once a second, see backlog; beyond: result 8
//	incomplete long messages    of an account: Config.SegmentSetsMax; SUBMITs for later: Config.BacklogMax; beyond: result 8
//	CANCELs and QUERYs          256 in all, 4 of a connection; beyond: CANCEL fails, QUERY is not answered
//	resends recognised          the last 512 sequence numbers of a connection
//	records of logins           4,096 kinds between two writes, 100 rows an account, 1,000 of unknown accounts, see record
//
// # Locks
//
// places, guard, rates, record and a conn's own are taken one at a time, except that recheck notes a record with places locked.
//
// # Goroutines
//
// Run starts and waits for an acceptor for each listener, the committer, the backlog counter, the recorder of logins, the watcher of
// settings, and one goroutine for each connection, which runs its session (two more). There is none for a PDU.
//
// # Stop
//
// Cancelling Run's context: the listener closes, further SUBMITs are answered with 8, the queue is committed and answered,
// the sessions say TERMINATE and end.
//
// It imports cmpp, config, message, segment, session, settings, sms, store and wake (topics).
package inbound
