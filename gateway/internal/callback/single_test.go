package callback_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
)

// single offers an event to the endpoint of its type.
func (b *bench) single(tb testing.TB, e event.Event) event.Result {
	tb.Helper()
	content, err := json.Marshal(e)
	if err != nil {
		tb.Fatal(err)
	}
	at := *b
	at.url = strings.TrimSuffix(b.url, event.Path) + event.SinglePath(e.Type)
	status, answer, err := at.post(tb, http.MethodPost, bytes.NewReader(content))
	if err != nil || status != http.StatusOK {
		tb.Fatalf("%d %s, %v", status, answer, err)
	}
	var r event.Result
	if err := json.Unmarshal(answer, &r); err != nil || r.EventID != e.ID {
		tb.Fatalf("%s, %v", answer, err)
	}
	return r
}

func (b *bench) oneOfEach(t *testing.T) []event.Event {
	t.Helper()
	result, segment := b.dispatched(t), b.dispatched(t)
	return []event.Event{
		b.event(t, event.TypeSubmitResult, result),
		b.event(t, event.TypeSubmitSegmentResult, segment),
		b.receipt(t, 77),
		b.event(t, event.TypeUplink, event.Uplink{AccountID: 1, ChannelID: 1, SupplierMsgID: 5, Phone: "13800000000", Dest: "1069", Content: []byte("T"), At: time.Now()}),
		b.event(t, event.TypeDeadLetter, event.DeadLetter{AccountID: 1, ChannelID: 1, Kind: "report", Reason: "59 octets", Raw: []byte{1}, At: time.Now()}),
	}
}

// effects are what the five events leave, each once.
var effects = []string{
	`SELECT count(*) FROM submit WHERE state = 2`,
	`SELECT count(*) FROM account_entry WHERE kind = 3`,
	`SELECT count(*) FROM receipt`,
	`SELECT count(*) FROM uplink`,
	`SELECT count(*) FROM dead_letter WHERE account = 1`,
}

// Old and new endpoints share their idempotency: an event that comes both ways is applied once, whichever is first.
func TestAloneAndInABatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := b.oneOfEach(t)
	for round := range 2 {
		for i, e := range events {
			if (i+round)%2 == 0 {
				b.accepted(t, e)
				continue
			}
			if r := b.single(t, e); !r.Accepted || r.ErrorCode != "" {
				t.Errorf("%s alone: %+v", e.Type, r)
			}
		}
	}
	for i, want := range []int64{2, 2, 1, 1, 1} {
		if n := b.count(t, effects[i]); n != want {
			t.Errorf("%s: %d, want %d", effects[i], n, want)
		}
	}
	b.books(t)
}

// A shadow is answered as the batch would be, and nothing of it stays.
func TestShadowIsTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := append(b.oneOfEach(t), b.event(t, event.TypeReceipt, event.Receipt{}))
	content, err := json.Marshal(event.BatchRequest{BatchID: "CB-001", Shadow: true, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	status, answer, err := b.post(t, http.MethodPost, bytes.NewReader(content))
	var shadow event.BatchResponse
	if err != nil || status != http.StatusOK || json.Unmarshal(answer, &shadow) != nil {
		t.Fatalf("%d %s, %v", status, answer, err)
	}
	for _, sql := range append(effects, `SELECT count(*) FROM dead_letter`) {
		if n := b.count(t, sql); n != 0 {
			t.Errorf("a shadow left %d of %s", n, sql)
		}
	}
	for i, r := range b.offer(t, events...) {
		if r != shadow.Results[i] {
			t.Errorf("%s: the shadow said %+v, the batch %+v", events[i].Type, shadow.Results[i], r)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM dead_letter`); n != 2 {
		t.Errorf("%d dead letters, want the event and the refused receipt", n)
	}
	b.books(t)
}

func TestSingleEndpointRefusesWhatIsNoEventOfItsType(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.url = strings.TrimSuffix(b.url, event.Path) + event.SinglePath(event.TypeReceipt)
	for content, want := range map[string]string{
		`{`:             "body",
		`{"payload":1}`: "eventId: 0",
		`{"eventId":"7","type":"uplink","payload":{}}`: `type: "uplink"`,
	} {
		status, answer, err := b.post(t, http.MethodPost, strings.NewReader(content))
		if err != nil || status != http.StatusBadRequest || !strings.Contains(string(answer), strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: %d %s, %v; want %s", content, status, answer, err, want)
		}
	}
	b.url = strings.TrimSuffix(b.url, event.SinglePath(event.TypeReceipt)) + event.SinglePath("gossip")
	if status, answer, err := b.post(t, http.MethodPost, strings.NewReader(`{}`)); err != nil || status != http.StatusNotFound {
		t.Errorf("an unknown type: %d %s, %v", status, answer, err)
	}
}

// authority signs certificates for one test.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(t *testing.T, file, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(a.dir, file)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (a *authority) ca() string { return filepath.Join(a.dir, "ca.pem") }

// sign makes a certificate for loopback, of servers and clients alike.
func (a *authority) sign(t *testing.T, name string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, name+".pem", "CERTIFICATE", der), a.write(t, name+".key", "PRIVATE KEY", secret)
}

// With a client authority only an edge that proves itself gets a word in.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	b := setup(t, func(c *config.Config) {
		c.Callback.TLSCert, c.Callback.TLSKey = ours.sign(t, "core")
		c.Callback.TLSClientCA = ours.ca()
	})
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	post := func(t *testing.T, by *authority) (int, error) {
		t.Helper()
		secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
		if by != nil {
			cert, err := tls.LoadX509KeyPair(by.sign(t, "edge"))
			if err != nil {
				t.Fatal(err)
			}
			secure.Certificates = []tls.Certificate{cert}
		}
		transport := &http.Transport{TLSClientConfig: secure}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.Replace(b.url, "http:", "https:", 1), bytes.NewReader(body(t, b.receipt(t, 1))))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := post(t, ours); err != nil || status != http.StatusOK {
		t.Errorf("an edge with our certificate: %d, %v", status, err)
	}
	for name, by := range map[string]*authority{"none": nil, "another's": others} {
		if status, err := post(t, by); err == nil {
			t.Errorf("an edge with certificate %s: %d, want no handshake", name, status)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM receipt`); n != 1 {
		t.Errorf("%d receipts, want 1", n)
	}
}
