package store_test

import (
	"testing"

	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestDeadNodeIsAdoptedOnceThenFree", "TestNobodyAdoptsRightAfterAnOutage", "TestIDsAscendOverRestarts", "TestMsgIDs", "TestPartitions", "TestTimesAreReadInUTC", "TestLeasesOverMidnight")
}
