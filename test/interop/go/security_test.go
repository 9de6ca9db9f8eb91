// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/coder/websocket"

	"github.com/triagemq/triagemq/test/interop/go/running"
)

func TestUnknownEntity(t *testing.T) {
	t.Parallel()
	q := open(t, "no-such-queue")
	wantCode(t, "send", q.SendMessage(q.ctx, &azservicebus.Message{}, nil), azservicebus.CodeNotFound)
	_, err := q.ReceiveMessages(q.ctx, 1, nil)
	wantCode(t, "receive", err, azservicebus.CodeNotFound)
}

func TestWrongKeyIsRefused(t *testing.T) {
	t.Parallel()
	q := openOn(t, connect(t, shared.ConnectionWith(running.KeyName, "wrong")), "secured")
	err := q.SendMessage(q.ctx, &azservicebus.Message{}, nil)
	wantCode(t, "send with a wrong key", err, azservicebus.CodeUnauthorizedAccess)
	q = openOn(t, connect(t, shared.ConnectionWith("NoSuchRule", running.Key)), "secured")
	_, err = q.ReceiveMessages(q.ctx, 1, nil)
	wantCode(t, "receive with an unknown rule", err, azservicebus.CodeUnauthorizedAccess)
}

// signature makes a ready token for one queue.
func signature(b *running.Broker, queue string, expires time.Time) string {
	resource := url.QueryEscape("sb://127.0.0.1:" + b.Port + "/" + queue)
	until := fmt.Sprint(expires.Unix())
	mac := hmac.New(sha256.New, []byte(running.Key))
	mac.Write([]byte(resource + "\n" + until))
	return fmt.Sprintf("Endpoint=sb://127.0.0.1:%s;UseDevelopmentEmulator=true;SharedAccessSignature=SharedAccessSignature sr=%s&sig=%s&se=%s&skn=%s",
		b.Port, resource, url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))), until, running.KeyName)
}

func TestExpiredTokenIsRefused(t *testing.T) {
	t.Parallel()
	q := openOn(t, connect(t, signature(shared, "secured", time.Now().Add(-time.Hour))), "secured")
	err := q.SendMessage(q.ctx, &azservicebus.Message{}, nil)
	e := wantCode(t, "send with an expired token", err, azservicebus.CodeUnauthorizedAccess)
	if !strings.Contains(e.Error(), "ExpiredToken: The token is expired. Expiration time:") {
		t.Errorf("the error does not say that the token is expired: %v", e)
	}
}

func TestReadyTokenWorksWhereItIsMeantFor(t *testing.T) {
	t.Parallel()
	c := connect(t, signature(shared, "secured", time.Now().Add(time.Hour)))
	q := openOn(t, c, "secured")
	q.send("a")
	q.complete(q.one())
	elsewhere := openOn(t, c, "modes")
	err := elsewhere.SendMessage(q.ctx, &azservicebus.Message{}, nil)
	wantCode(t, "send to another queue", err, azservicebus.CodeUnauthorizedAccess)
}

// A missing right is reported when a link is attached, with its name.
func TestRightsAreKept(t *testing.T) {
	t.Parallel()
	send := openOn(t, connect(t, shared.ConnectionWith("SendOnly", "c2VuZC1vbmx5LWtleQ==")), "rights")
	listen := openOn(t, connect(t, shared.ConnectionWith("ListenOnly", "bGlzdGVuLXNwYXJlLWtleQ==")), "rights")
	send.send("a")
	listen.complete(listen.one())
	_, err := send.ReceiveMessages(send.ctx, 1, nil)
	if e := wantCode(t, "receive with Send only", err, azservicebus.CodeUnauthorizedAccess); !strings.Contains(e.Error(), "'Listen' claim(s) are required") {
		t.Errorf("the error does not name the missing right: %v", e)
	}
	err = listen.SendMessage(listen.ctx, &azservicebus.Message{}, nil)
	if e := wantCode(t, "send with Listen only", err, azservicebus.CodeUnauthorizedAccess); !strings.Contains(e.Error(), "'Send' claim(s) are required") {
		t.Errorf("the error does not name the missing right: %v", e)
	}
}

// bearer is a credential of an unknown identity provider.
type bearer struct{}

func (bearer) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "eyJhbGciOiJub25lIn0.e30.", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// In development a token credential works without its identity provider.
func TestTokenCredential(t *testing.T) {
	t.Parallel()
	c, err := azservicebus.NewClient("localhost:"+shared.Port, bearer{}, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	q := openOn(t, c, "bearer")
	q.send("a")
	q.complete(q.one())
	if err := c.Close(q.ctx); err != nil {
		t.Error(err)
	}
}

// Every operation of the administration API gets an answer.
func TestAdministrationDoesNotHang(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c, err := admin.NewClientFromConnectionString(shared.SecureConnection(), &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.GetQueue(ctx, "modes", nil)
	var refusal *azcore.ResponseError
	if err != nil && !errors.As(err, &refusal) {
		t.Errorf("get a queue: %v (%T), want an answer", err, err)
	}
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	c := connectWith(t, shared.SecureConnection(), &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			ws, _, err := websocket.Dial(ctx, args.Host, &websocket.DialOptions{Subprotocols: []string{"amqp"}})
			if err != nil {
				return nil, err
			}
			return websocket.NetConn(context.WithoutCancel(ctx), ws, websocket.MessageBinary), nil
		},
	})
	q := openOn(t, c, "websocket")
	q.send("through", "a", "socket")
	ms := q.receive(3)
	if got := bodies(ms); got != "through a socket" {
		t.Errorf("received %q", got)
	}
	q.complete(ms...)
}

// The SDK takes host and port for the name in the certificate, so the
// certificate has that name too, with any port.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := connect(t, shared.SecureConnection())
	q := openOn(t, c, "tls")
	q.send("secret")
	m := q.one()
	if string(m.Body) != "secret" {
		t.Errorf("received %q", m.Body)
	}
	q.complete(m)
}
