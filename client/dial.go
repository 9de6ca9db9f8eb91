// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"github.com/Azure/go-amqp"
	"github.com/coder/websocket"
)

// maxWebSocketMessage bounds what one WebSocket message may hold; AMQP frames
// are at most 64 KiB here, and a peer may put several into one.
const maxWebSocketMessage = 1 << 20

// open makes a connection and logs in; tokens come later, one per entity. It
// also returns the socket, whose closing ends a connection that does not listen.
func (o *Options) open(ctx context.Context, t target, lifetime context.Context) (*amqp.Conn, net.Conn, error) {
	raw, err := o.transport(ctx, t, lifetime)
	if err != nil {
		return nil, nil, err
	}
	sasl := amqp.SASLTypeAnonymous()
	if t.user != "" {
		sasl = amqp.SASLTypePlain(t.user, t.pass)
	}
	// NewConn closes raw when it fails.
	conn, err := amqp.NewConn(ctx, raw, &amqp.ConnOptions{
		ContainerID: o.Name,
		HostName:    t.name,
		SASLType:    sasl,
		Properties:  map[string]any{"product": "triagemq-client", "platform": "go"},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", t.host, translate(err))
	}
	return conn, raw, nil
}

// transport opens the byte stream that AMQP runs on. A WebSocket lives as long
// as the context it was made with, hence the lifetime.
func (o *Options) transport(ctx context.Context, t target, lifetime context.Context) (net.Conn, error) {
	if t.scheme == "ws" || t.scheme == "wss" {
		return o.webSocket(ctx, t, lifetime)
	}
	raw, err := o.tcp(ctx, "tcp", t.host)
	if err != nil || !t.secure() {
		return raw, err
	}
	secure := tls.Client(raw, o.tlsConfig(t))
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS with %s: %w", t.host, err)
	}
	return secure, nil
}

func (o *Options) tcp(ctx context.Context, network, address string) (net.Conn, error) {
	if o.DialContext != nil {
		return o.DialContext(ctx, network, address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

func (o *Options) tlsConfig(t target) *tls.Config {
	c := &tls.Config{}
	if o.TLS != nil {
		c = o.TLS.Clone()
	}
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(t.host)
	}
	return c
}

func (o *Options) webSocket(ctx context.Context, t target, lifetime context.Context) (net.Conn, error) {
	transport := &http.Transport{DialContext: o.tcp, TLSClientConfig: o.tlsConfig(t)}
	ws, _, err := websocket.Dial(ctx, t.scheme+"://"+t.host+t.path, &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: transport},
		Subprotocols: []string{"amqp"},
	})
	if err != nil {
		transport.CloseIdleConnections() // an answer that refuses leaves one, and the transport is used once
		return nil, fmt.Errorf("WebSocket to %s: %w", t.host, err)
	}
	ws.SetReadLimit(maxWebSocketMessage)
	return websocket.NetConn(lifetime, ws, websocket.MessageBinary), nil
}
