package stack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

const (
	loopback  = "127.0.0.1"
	firstPort = 15000
	portTries = 20
)

// FreePort picks a free loopback port below the range the kernel hands out to
// outgoing connections. A server that is killed and restarted needs the same
// port again, and a client that dials it meanwhile would otherwise be given
// that very port as its own (and even connect to itself).
func FreePort(ctx context.Context) (int, error) {
	low := ephemeralLow()
	var lc net.ListenConfig
	for range portTries {
		port := 0
		if low > firstPort {
			port = firstPort + rand.IntN(low-firstPort)
		}
		l, err := lc.Listen(ctx, "tcp4", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		addr, _ := l.Addr().(*net.TCPAddr)
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("free port: %w", err)
		}
		return addr.Port, nil
	}
	return 0, fmt.Errorf("no free port on %s after %d tries", loopback, portTries)
}

// ephemeralLow is the first port of the kernel's range for outgoing
// connections, 0 when it cannot be read.
func ephemeralLow() int {
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	var low int
	if _, err := fmt.Sscan(string(data), &low); err != nil {
		return 0
	}
	return low
}
