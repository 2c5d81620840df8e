package reconcile_test

import (
	"testing"

	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestEqualDay", "TestEveryDifference", "TestUnknownsAreClosedByEvidence", "TestFormats")
}
