// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"github.com/triagemq/triagemq/internal/azure"
)

// subprotocols are the names under which clients carry AMQP: the registered one,
// and the vendor's.
var subprotocols = []string{"amqp", "AMQPWSB10"}

// serveWebSocket carries AMQP over a WebSocket, as a stream of bytes: frames may
// straddle messages.
func (f *frontend) serveWebSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, conn *handed) {
	if err := f.checkWebSocket(r, conn); err != nil {
		f.log.Debug("WebSocket refused", "peer", r.RemoteAddr, "err", err)
		refuseForeign(w, err)
		return
	}
	conn.tunnel.Store(true)
	cost := conn.cost() + webSocketCost + conn.held.used()
	conn.held.leave() // AMQP has an account of its own
	ws, err := websocket.Accept(meteredWriter{w}, r, &websocket.AcceptOptions{
		Subprotocols:       subprotocols,
		InsecureSkipVerify: true, // it was verified just now
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		f.log.Debug("WebSocket refused", "peer", r.RemoteAddr, "err", err)
		conn.tunnel.Store(false)
		return
	}
	ws.SetReadLimit(-1) // the endpoint bounds what it keeps, and meteredConn how it comes
	// The stream must outlive ctx: the peer gets the reason why it ends.
	stream := websocket.NetConn(context.WithoutCancel(ctx), ws, websocket.MessageBinary)
	defer stream.Close()
	f.serveAMQP(ctx, webStream{stream, conn.RemoteAddr()}, conn.slot,
		azure.Peer{Authority: f.authorityFor(r), Certificate: conn.certificate, CertificateEnds: conn.certificateEnds, Cost: cost})
}

// webStream is a WebSocket with the address of its peer, which decides what it is
// allowed.
type webStream struct {
	net.Conn
	peer net.Addr
}

// RemoteAddr returns the address of the connection below.
func (s webStream) RemoteAddr() net.Addr { return s.peer }
