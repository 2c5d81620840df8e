package main

import (
	"os"
	"regexp"
	"testing"
)

// Whatever a login is refused for, the doctor knows what helps.
func TestEveryRefusalHasAdvice(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("internal/inbound/login.go")
	if err != nil {
		t.Fatal(err)
	}
	causes := regexp.MustCompile(`refuse\([^"]*"([^"]+)"|return "(the [^"]+ is disabled)"`).FindAllStringSubmatch(string(source), -1)
	if len(causes) < 8 {
		t.Fatalf("%d causes found in the source of the logins; the test reads it no more", len(causes))
	}
	for _, c := range causes {
		if cause := c[1] + c[2]; adviseLogin(cause) == "" {
			t.Errorf("no advice for %q", cause)
		}
	}
}
