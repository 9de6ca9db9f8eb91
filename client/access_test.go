// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

func TestEveryWayIn(t *testing.T) {
	b := triagetest.Start(t, entities)
	const rule, key = "RootManageSharedAccessKey", "SAS_KEY_VALUE"
	here := "127.0.0.1:" + b.Port()
	secure := &client.Options{TLS: &tls.Config{InsecureSkipVerify: true}} // the CA is on the broker's disk, in memory
	for name, address := range map[string]string{
		"connection string": b.ConnectionString(),
		"TLS":               "Endpoint=sb://localhost:" + b.Port() + ";SharedAccessKeyName=" + rule + ";SharedAccessKey=" + key,
		"WebSocket":         b.ConnectionString() + ";TransportType=AmqpWebSockets",
		"login":             "amqp://" + rule + ":" + key + "@" + here,
		"secure login":      "amqps://" + rule + ":" + key + "@localhost:" + b.Port(),
		"secure WebSocket":  "wss://" + rule + ":" + key + "@localhost:" + b.Port(),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := deadline(t)
			c, err := client.Dial(ctx, address, secure)
			must(t, err)
			defer c.Close()
			q := open(t, c, "orders", nil)
			q.say(name)
			ms := q.take(1)
			wantBodies(t, ms, name)
			must(t, q.Complete(ctx, ms...))
		})
	}
}

func TestDefaultEntity(t *testing.T) {
	b := triagetest.Start(t, entities)
	ctx := deadline(t)
	c, err := client.Dial(ctx, b.ConnectionString()+";EntityPath=orders", nil)
	must(t, err)
	defer c.Close()
	q := open(t, c, "", nil)
	q.say("a")
	wantBodies(t, q.take(1), "a")
}

func TestRefusals(t *testing.T) {
	b := triagetest.Start(t, entities)
	ctx := deadline(t)
	c := b.Client()
	_, err := c.OpenSender(ctx, "nowhere", nil)
	wantError(t, "send to an unknown queue", err, client.ErrNotFound)
	_, err = c.OpenReceiver(ctx, "nowhere", nil)
	wantError(t, "receive from an unknown queue", err, client.ErrNotFound)
	_, err = c.OpenSender(ctx, client.DeadLetterQueue("orders"), nil)
	wantError(t, "send to dead letters", err, client.ErrNotAllowed)

	q := open(t, c, "orders", nil)
	wantError(t, "send too much", q.Send(ctx, &client.Message{Body: make([]byte, 1<<20)}), client.ErrTooLarge)
	wantError(t, "send a wrong priority", q.Send(ctx, &client.Message{Priority: "300"}), client.ErrInvalid)
	q.say("the sender still works")
	must(t, q.Complete(ctx, q.take(1)...))

	outsider, err := client.Dial(ctx, strings.Replace(b.ConnectionString(), "SAS_KEY_VALUE", "wrong", 1), nil)
	must(t, err) // tokens are put for each entity
	defer outsider.Close()
	_, err = outsider.OpenSender(ctx, "orders", nil)
	wantError(t, "send with a wrong key", err, client.ErrUnauthorized)

	_, err = client.Dial(ctx, "amqp://RootManageSharedAccessKey:wrong@127.0.0.1:"+b.Port(), nil)
	wantError(t, "log in with a wrong key", err, client.ErrUnauthorized)
	_, err = client.Dial(ctx, "nonsense", nil)
	wantError(t, "dial nonsense", err, client.ErrAddress)
}

func TestClosed(t *testing.T) {
	b := triagetest.Start(t, entities)
	c := b.Client()
	q := open(t, c, "orders", nil)
	must(t, q.Sender.Close())
	wantError(t, "send on a closed sender", q.Send(q.ctx, &client.Message{}), client.ErrClosed)
	must(t, q.Receiver.Close())
	_, err := q.Receive(q.ctx, 1)
	wantError(t, "receive on a closed receiver", err, client.ErrClosed)

	waiting := open(t, c, "orders", nil)
	ended := make(chan error, 1)
	go func() { // ends with the receive below
		_, err := waiting.Receive(waiting.ctx, 1)
		ended <- err
	}()
	must(t, c.Close())
	wantError(t, "receive while the client is closed", <-ended, client.ErrClosed)
	_, err = c.OpenSender(q.ctx, "orders", nil)
	wantError(t, "open a sender on a closed client", err, client.ErrClosed)
}

// A broker that is not there is an error of Dial at once, and of everything else
// after the time that was allowed for.
func TestUnreachable(t *testing.T) {
	b := triagetest.Start(t, entities)
	ctx := deadline(t)
	w := new(wire)
	c, err := client.Dial(ctx, b.ConnectionString(), &client.Options{DialContext: w.dial, RetryTimeout: 300 * time.Millisecond})
	must(t, err)
	defer c.Close()
	q := open(t, c, "orders", nil)
	w.refuse()
	w.cut()
	if err := q.Send(q.ctx, &client.Message{}); err == nil || ctx.Err() != nil {
		t.Errorf("send without a broker: %v (%v), want the reason before the deadline", err, ctx.Err())
	}
	if _, err := client.Dial(ctx, b.ConnectionString(), &client.Options{DialContext: w.dial}); err == nil {
		t.Error("dialled a broker that refuses")
	}
}
