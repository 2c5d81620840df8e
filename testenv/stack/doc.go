// Package stack provides one PostgreSQL and one Redis to test and measure
// against, and lets a fault be done to them. Package testenv hands them to
// tests; the scenarios use this package as it is.
//
// # Where the servers come from
//
// Options.Mode, or TESTENV_MODE, chooses; auto takes the first that works:
//
//	urls        TESTENV_POSTGRES_URL (a superuser's) and TESTENV_REDIS_ADDR, used as they are
//	containers  an engine that answers within 2 s and has the images, or gets them from a registry
//	processes   initdb, postgres and redis-server from PATH or Debian's folders
//
// and else reports ErrUnavailable, which names the command that helps. The
// images are those of `make images`, else the public ones;
// TESTENV_POSTGRES_IMAGE and TESTENV_REDIS_IMAGE name others. Only loopback is
// listened on. Servers keep the durability of production (fsync, synchronous
// commits, append-only file); Durability reports the settings in force,
// because results under different ones are not comparable.
//
// # Processes
//
// Only servers that run as processes can be killed, frozen and restarted:
// Stack.Postgres and Stack.Redis return them, StartPostgres and StartRedis
// start single ones. A Process keeps its data and its port over restarts; the
// port lies below the range the kernel gives to outgoing connections, so that
// nobody takes it while the server is down. Under root the servers run as
// user postgres or nobody.
//
// The package runs on Linux alone: it reads /proc, and relies on Pdeathsig.
//
// # What is left after a kill
//
// Servers die with the program that started them, however it ends: processes
// by Pdeathsig, sent when the thread that forked them ends, which is therefore
// kept for the purpose (spawner). Data directories, containers and frozen
// workers of a program that was killed are removed by the next program that
// starts servers in the same place; a lock file the kernel releases tells the
// living from the dead. Not covered: the loss of power.
//
// # Ownership
//
// Each Process owns two goroutines, the spawner's and one that waits for the
// child; both end in Close. It imports the drivers, testcontainers and no
// other package of this module.
package stack
