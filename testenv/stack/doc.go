// Package stack provides one PostgreSQL and one Redis to run against.
package stack
