// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// entities is what every broker of this suite starts with. Tests do not share
// queues, so that they can run side by side.
const entities = `
security:
  rules:
    - {name: SendOnly, rights: [Send], primaryKey: c2VuZC1vbmx5LWtleQ==}
    - {name: ListenOnly, rights: [Listen], primaryKey: bGlzdGVuLW9ubHkta2V5, secondaryKey: bGlzdGVuLXNwYXJlLWtleQ==}
queues:
  - {name: modes}
  - {name: deleting}
  - {name: batches}
  - {name: draining}
  - {name: renewing, lockDuration: 5s}
  - {name: abandoning, maxDeliveryCount: 3}
  - {name: abandoning-much, maxDeliveryCount: 3}
  - {name: deferring}
  - {name: deferring-counts}
  - {name: long-lived}
  - {name: deferring-once, maxDeliveryCount: 1}
  - {name: deferred-expiring, deadLetteringOnMessageExpiration: true}
  - {name: deferred-dropped}
  - {name: short-lived, defaultMessageTimeToLive: 1h}
  - {name: forward-first, forwardTo: forward-middle}
  - {name: forward-middle, forwardTo: forward-last}
  - {name: forward-last}
  - {name: dead-letters-plain}
  - {name: large-properties}
  - {name: dead-letters}
  - {name: peeking}
  - {name: scheduling}
  - {name: sessions, requiresSession: true}
  - {name: next-session, requiresSession: true}
  - {name: contended, requiresSession: true}
  - {name: session-list, requiresSession: true}
  - {name: session-rules, requiresSession: true}
  - {name: duplicates, requiresDuplicateDetection: true, duplicateDetectionHistoryTimeWindow: 1m}
  - {name: forward-source, forwardTo: forward-target}
  - {name: forward-target}
  - {name: oversize}
  - {name: lock-lost, lockDuration: 5s}
  - {name: settled-elsewhere}
  - {name: secured}
  - {name: rights}
  - {name: bearer}
  - {name: websocket}
  - {name: tls}
  - {name: priorities}
  - {name: header-priorities}
  - {name: urgent-late}
  - {name: asking}
  - {name: answers}
  - {name: lifted, requiresSession: true}
  - {name: roundtrip}
  - {name: bodies}
  - {name: resend}
  - {name: competing}
  - {name: expiring, deadLetteringOnMessageExpiration: true}
  - {name: restart}
  - {name: load}
  - {name: site/nested}
`

// The credentials that --dev accepts on loopback: the emulators' well-known ones.
const (
	devKeyName = "RootManageSharedAccessKey"
	devKey     = "SAS_KEY_VALUE"
)

// shared is the broker that most tests use. It is set by TestMain.
var shared *broker

// binary is the broker to run: what TRIAGEMQ_BINARY names, or what TestMain built.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "triagemq-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if code == 0 {
			os.RemoveAll(dir)
		} else {
			fmt.Fprintln(os.Stderr, "the broker's log and data are kept in", dir)
		}
	}()
	if binary = os.Getenv("TRIAGEMQ_BINARY"); binary == "" {
		binary = filepath.Join(dir, "triagemq")
		build := exec.Command("go", "build", "-o", binary, "./cmd/triagemq")
		build.Dir = filepath.Join("..", "..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the broker: %v\n%s", err, out)
			return 1
		}
	}
	shared, err = startBroker(filepath.Join(dir, "shared"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.stop()
	// Read when a TLS client first needs the system's roots, which is later.
	os.Setenv("SSL_CERT_FILE", filepath.Join(shared.data, "tls", "ca.pem"))
	return m.Run()
}

// broker is a running broker process.
type broker struct {
	data string
	port string
	log  string // where its output goes
	cmd  *exec.Cmd
}

// startBroker starts a broker on a free port with its data below dir.
func startBroker(dir string) (*broker, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "broker.yaml"), []byte(entities), 0o644); err != nil {
		return nil, err
	}
	b := &broker{data: filepath.Join(dir, "data"), port: port, log: filepath.Join(dir, "broker.log")}
	return b, b.start(filepath.Join(dir, "broker.yaml"))
}

// start runs the process and waits until it is ready.
func (b *broker) start(config string) error {
	log, err := os.OpenFile(b.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	b.cmd = exec.Command(binary, "serve", "--dev", "--data", b.data, "--config", config, "--listen", "127.0.0.1:"+b.port)
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.ready(ctx); err != nil {
		b.kill()
		text, _ := os.ReadFile(b.log)
		return fmt.Errorf("broker does not get ready: %w\n%s", err, text)
	}
	return nil
}

func (b *broker) ready(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := http.Get("http://127.0.0.1:" + b.port + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// kill ends the process as a crash would.
func (b *broker) kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// stop ends the process politely.
func (b *broker) stop() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { defer close(done); _ = b.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		_ = b.cmd.Process.Kill()
		<-done
	}
}

// restart starts the process again, on the same port and data.
func (b *broker) restart() error {
	return b.start(filepath.Join(filepath.Dir(b.data), "broker.yaml"))
}

// ownBroker starts a broker for one test.
func ownBroker(t *testing.T) *broker {
	t.Helper()
	b, err := startBroker(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stop)
	return b
}

// connection is the connection string for plain AMQP.
func (b *broker) connection() string {
	return b.connectionWith(devKeyName, devKey)
}

func (b *broker) connectionWith(name, key string) string {
	return fmt.Sprintf("Endpoint=sb://127.0.0.1:%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true", b.port, name, key)
}

// secureConnection is the connection string for TLS. The certificate is for
// localhost.
func (b *broker) secureConnection() string {
	return fmt.Sprintf("Endpoint=sb://localhost:%s;SharedAccessKeyName=%s;SharedAccessKey=%s", b.port, devKeyName, devKey)
}

// connect makes a client that fails fast instead of retrying for minutes.
func connect(t *testing.T, connection string) *azservicebus.Client {
	t.Helper()
	return connectWith(t, connection, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
}

func connectWith(t *testing.T, connection string, o *azservicebus.ClientOptions) *azservicebus.Client {
	t.Helper()
	c, err := azservicebus.NewClientFromConnectionString(connection, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// deadline bounds a test, so that a hang is a failure with a name.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// queue is a sender and a receiver on one queue.
type queue struct {
	t    *testing.T
	ctx  context.Context
	name string
	*azservicebus.Client
	*azservicebus.Sender
	*azservicebus.Receiver
}

// open connects to a queue of the shared broker in peek-lock mode.
func open(t *testing.T, name string) *queue {
	t.Helper()
	return openOn(t, connect(t, shared.connection()), name)
}

func openOn(t *testing.T, c *azservicebus.Client, name string) *queue {
	t.Helper()
	s, err := c.NewSender(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.NewReceiverForQueue(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &queue{t: t, ctx: deadline(t), name: name, Client: c, Sender: s, Receiver: r}
}

// send sends messages with these bodies, one by one.
func (q *queue) send(bodies ...string) {
	q.t.Helper()
	for _, body := range bodies {
		q.sendMessage(&azservicebus.Message{Body: []byte(body)})
	}
}

func (q *queue) sendMessage(m *azservicebus.Message) {
	q.t.Helper()
	if err := q.SendMessage(q.ctx, m, nil); err != nil {
		q.t.Fatalf("send to %s: %v", q.name, err)
	}
}

// receive takes exactly n messages.
func (q *queue) receive(n int) []*azservicebus.ReceivedMessage {
	q.t.Helper()
	return take(q.t, q.ctx, q.Receiver, n)
}

// one takes exactly one message.
func (q *queue) one() *azservicebus.ReceivedMessage {
	q.t.Helper()
	return q.receive(1)[0]
}

// taker is what receivers and session receivers share.
type taker interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

func take(t *testing.T, ctx context.Context, r taker, n int) []*azservicebus.ReceivedMessage {
	t.Helper()
	var out []*azservicebus.ReceivedMessage
	for len(out) < n {
		ms, err := r.ReceiveMessages(ctx, n-len(out), nil)
		if err != nil {
			t.Fatalf("receive message %d of %d: %v", len(out)+1, n, err)
		}
		out = append(out, ms...)
	}
	return out
}

// empty fails the test if a message comes within a short while.
func (q *queue) empty() {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.ctx, 300*time.Millisecond)
	defer cancel()
	ms, err := q.ReceiveMessages(ctx, 1, nil)
	if err == nil {
		q.t.Fatalf("%s: received %q, want nothing", q.name, bodies(ms))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		q.t.Fatalf("%s: receive from an empty queue: %v, want %v", q.name, err, context.DeadlineExceeded)
	}
}

func (q *queue) complete(ms ...*azservicebus.ReceivedMessage) {
	q.t.Helper()
	for _, m := range ms {
		if err := q.CompleteMessage(q.ctx, m, nil); err != nil {
			q.t.Fatalf("complete %q: %v", m.Body, err)
		}
	}
}

// deadLetters opens a receiver on the queue's dead letter queue.
func (q *queue) deadLetters() *azservicebus.Receiver {
	q.t.Helper()
	r, err := q.NewReceiverForQueue(q.name, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		q.t.Fatal(err)
	}
	return r
}

func bodies(ms []*azservicebus.ReceivedMessage) string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = string(m.Body)
	}
	return strings.Join(out, " ")
}

// wantCode fails the test unless err is the SDK's error with that code.
func wantCode(t *testing.T, what string, err error, code azservicebus.Code) *azservicebus.Error {
	t.Helper()
	var e *azservicebus.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("%s: %v (%T), want an error with code %s", what, err, err, code)
	}
	return e
}

func ptr[T any](v T) *T { return &v }
