// Package testenv gives tests a real PostgreSQL and a real Redis.
package testenv
