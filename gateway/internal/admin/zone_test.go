package admin_test

import (
	"testing"

	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestPricesHaveATime")
}
