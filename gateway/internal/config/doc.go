// Package config is what the gateway reads at start: Default, overridden by a YAML file, overridden by the environment.
// Load reports every fault at once, with line, path, value and what is allowed.
//
// Each field has its YAML name, its allowed range ("1..512", "1s..2m", "debug|info", "host:port" or "any") and whether it is
// a secret in its tags, so that reading, the environment, checking and showing all follow the one struct.
//
// It imports the standard library and the YAML parser, does no I/O besides reading the file, and starts no goroutine.
package config
