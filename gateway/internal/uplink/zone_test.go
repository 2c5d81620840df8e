package uplink_test

import (
	"testing"

	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestWhatIsOptedOutOf", "TestOptOutIsReversible", "TestIncompleteUplinkGoesOnMarked")
}
