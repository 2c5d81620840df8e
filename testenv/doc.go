// Package testenv gives tests a real PostgreSQL and a real Redis.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) {
//		testenv.Migrated(store.Migrate)
//		testenv.Main(m)
//	}
//
// and its tests call DB for a migrated database of their own, Redis for an
// empty logical database of their own, and PostgresServer or RedisServer for a
// server to kill, freeze or restart. All may run in parallel.
//
// One stack (package stack, which says where servers come from) serves the
// whole test binary. The first test that needs it starts it, so a run of pure
// tests costs nothing; Main stops it and then looks for leaked goroutines. A
// binary that is killed takes its servers along. Migrations run once, in a
// template database; a test's database is a copy of it, made in a tenth of a
// second and dropped at the end of the test.
//
// Only test files may import it; it imports stack, goleak and the drivers.
package testenv
