package supplier_test

import (
	"testing"

	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestChannelHeldElsewhereIsLeftAloneUntilItsOwnerIsGone", "TestDeadNodeIsAdopted")
}
