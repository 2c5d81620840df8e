package main_test

import (
	"bytes"
	"context"
	"crypto/md5"
	wire "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// rawClient is a customer that builds its frames octet by octet, without the codec under test (CMPP 2.0 §7.4, CMPP 3.0 §8).
type rawClient struct {
	t    *testing.T
	conn net.Conn
	wide bool // 3.0 layout
}

// Commands.
const (
	rawConnect    = 0x00000001
	rawTerminate  = 0x00000002
	rawSubmit     = 0x00000004
	rawActiveTest = 0x00000008
	rawResponse   = 0x80000000
)

func rawDial(t *testing.T, addr string) *rawClient {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return &rawClient{t: t, conn: conn}
}

func rawFrame(command, seq uint32, body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	f := wire.BigEndian.AppendUint32(nil, uint32(12+len(all)))
	f = wire.BigEndian.AppendUint32(f, command)
	f = wire.BigEndian.AppendUint32(f, seq)
	return append(f, all...)
}

// octets is s in a field of width octets, filled with zeros on the right.
func octets(s string, width int) []byte { return append([]byte(s), make([]byte, width-len(s))...) }

// rawLogin is a CONNECT. hashed is the id as it goes into the digest, digits the timestamp as it goes there.
func rawLogin(id, hashed, secret string, version byte, stamp uint32, digits string) []byte {
	digest := md5.Sum([]byte(hashed + string(make([]byte, 9)) + secret + digits))
	return rawFrame(rawConnect, 1, octets(id, 6), digest[:], []byte{version}, wire.BigEndian.AppendUint32(nil, stamp))
}

// connect is what most clients send.
func rawConnectFrame(id, secret string, version byte) []byte {
	return rawLogin(id, id, secret, version, 102030405, "0102030405")
}

// rawSMS is a SUBMIT to n recipients; content as given.
func rawSMS(wide bool, seq uint32, msgSrc string, n int, content []byte) []byte {
	number, tail := 21, 8
	if wide {
		number, tail = 32, 20
	}
	body := [][]byte{make([]byte, 8), {1, 1, 0, 0}, octets("TEST", 10), {2}, make([]byte, number)}
	if wide {
		body = append(body, []byte{0}) // Fee_terminal_type
	}
	body = append(body, []byte{0, 0, 0}, octets(msgSrc, 6), []byte("01"), octets("0", 6), make([]byte, 17), make([]byte, 17), octets("1069", 21), []byte{byte(n)})
	for i := range n {
		body = append(body, octets(fmt.Sprintf("138000%05d", i), number))
	}
	if wide {
		body = append(body, []byte{0}) // Dest_terminal_type
	}
	return rawFrame(rawSubmit, seq, append(body, []byte{byte(len(content))}, content, make([]byte, tail))...)
}

func (c *rawClient) write(frames ...[]byte) {
	c.t.Helper()
	if _, err := c.conn.Write(bytes.Join(frames, nil)); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// read is the next frame, whatever it is.
func (c *rawClient) read() (command, seq uint32, body []byte) {
	c.t.Helper()
	command, seq, body, err := rawRead(c.conn)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return command, seq, body
}

func rawRead(r io.Reader) (command, seq uint32, body []byte, err error) {
	head := make([]byte, 12)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, 0, nil, err
	}
	length := wire.BigEndian.Uint32(head)
	if length < 12 || length > 4096 {
		return 0, 0, nil, fmt.Errorf("frame of %d octets", length)
	}
	body = make([]byte, length-12)
	_, err = io.ReadFull(r, body)
	return wire.BigEndian.Uint32(head[4:]), wire.BigEndian.Uint32(head[8:]), body, err
}

// status is that of the CONNECT_RESP that comes next, whose layout shows in its length.
func (c *rawClient) status() uint32 {
	c.t.Helper()
	command, _, body := c.read()
	switch {
	case command == rawConnect|rawResponse && len(body) == 18:
		c.wide = false
		return uint32(body[0])
	case command == rawConnect|rawResponse && len(body) == 21:
		c.wide = true
		return wire.BigEndian.Uint32(body)
	}
	c.t.Fatalf("command %#x with %d octets instead of CONNECT_RESP", command, len(body))
	return 0
}

// result is that of the SUBMIT_RESP to seq, which comes next.
func (c *rawClient) result(seq uint32) uint32 {
	c.t.Helper()
	command, got, body := c.read()
	want := 9
	if c.wide {
		want = 12
	}
	if command != rawSubmit|rawResponse || got != seq || len(body) != want {
		c.t.Fatalf("command %#x, sequence %d, %d octets instead of SUBMIT_RESP to %d", command, got, len(body), seq)
	}
	if c.wide {
		return wire.BigEndian.Uint32(body[8:])
	}
	return uint32(body[8])
}

// ends wants the connection to end without another frame.
func (c *rawClient) ends() {
	c.t.Helper()
	if command, seq, _, err := rawRead(c.conn); err == nil {
		c.t.Fatalf("command %#x, sequence %d instead of the end", command, seq)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal("still open")
	}
}

// alive wants the link to work: a link test is answered, and a SUBMIT.
func (c *rawClient) alive(id string) {
	c.t.Helper()
	c.write(rawFrame(rawActiveTest, 77), rawSMS(c.wide, 78, id, 1, []byte("alive")))
	if command, seq, body := c.read(); command != rawActiveTest|rawResponse || seq != 77 || len(body) != 1 {
		c.t.Fatalf("command %#x, sequence %d, %d octets instead of ACTIVE_TEST_RESP", command, seq, len(body))
	}
	if r := c.result(78); r != 0 {
		c.t.Fatalf("result %d", r)
	}
}

// flood writes frame until the connection takes no more or most octets are written, and reads nothing.
func (c *rawClient) flood(ctx context.Context, frame []byte, most int) {
	many := bytes.Repeat(frame, 512)
	for n := 0; n < most && ctx.Err() == nil; n += len(many) {
		if _, err := c.conn.Write(many); err != nil {
			return
		}
	}
}
