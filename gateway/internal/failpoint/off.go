//go:build !failpoint

package failpoint

// Arm reads the environment; without the build tag there is nothing to arm.
func Arm() error { return nil }

// Hit is a pass of the point.
func Hit(string) {}
