// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

// withheldBodies is number 7: unauthenticated clients announce a body and do
// not send it.
func withheldBodies(s *scene) {
	const count = 600
	var conns [count]net.Conn
	together(count, 32, func(i int) {
		nc, err := s.dialFrom(s.ctx, net.IPv4(127, 0, 3, byte(1+i/50)))
		if err != nil {
			return
		}
		s.Cleanup(func() { nc.Close() })
		conns[i] = nc
		fmt.Fprintf(nc, "POST /site/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
	})
	until := time.Now().Add(time.Duration(scale(12, 30)) * time.Second)
	var open atomic.Int64
	var reading sync.WaitGroup
	for _, nc := range conns {
		if nc == nil {
			continue
		}
		reading.Go(func() {
			nc.SetReadDeadline(until)
			_, err := io.Copy(io.Discard, nc)
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				open.Add(1)
			}
		})
	}
	reading.Wait()
	s.Logf("%d of %d connections are open", open.Load(), count)
	if open.Load() > 0 {
		s.Errorf("%d of %d unauthenticated clients that withhold a body are still connected", open.Load(), count)
	}
}

// bodiesHeldOpen is number 7 by clients with a key: bodies of 1 MB whose last
// byte is not sent.
func bodiesHeldOpen(s *scene) {
	const size = 1 << 20
	body := []byte(`{"body": "` + longText(size-100))
	var written atomic.Int64
	together(scale(640, 2000), 64, func(i int) {
		nc, err := s.dialFrom(s.ctx, net.IPv4(127, 0, 3, byte(1+i/50)))
		if err != nil {
			return
		}
		s.Cleanup(func() { nc.Close() })
		nc.SetDeadline(time.Now().Add(time.Second))
		fmt.Fprintf(nc, "POST /api/v1/queues/site/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Authorization: %s\r\nContent-Length: %d\r\n\r\n", access.SignToken(sendKey, "http://localhost/", time.Now().Add(time.Hour)), size)
		n, _ := nc.Write(body) // as much as is read
		written.Add(int64(n))
	})
	pause(s.ctx, 2*time.Second) // for the broker to read the buffers of the system
	s.Logf("%d MiB were written", written.Load()>>20)
}

// answersNotRead is about answers of HTTP: 4 MB of messages that the client
// does not read.
func answersNotRead(s *scene) {
	s.fill("answers", 1000, func(int) message.Draft { return message.Draft{Body: []byte(longText(4 << 10))} })
	together(scale(300, 600), 64, func(i int) {
		nc, err := s.dialFrom(s.ctx, net.IPv4(127, 0, 3, byte(1+i/50)))
		if err != nil {
			return
		}
		s.Cleanup(func() { nc.Close() })
		nc.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(nc, "GET /api/v1/queues/answers/messages?max=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n",
			access.SignToken(listenKey, "http://localhost/", time.Now().Add(time.Hour)))
	})
	pause(s.ctx, 4*time.Second)
}

// unauthenticatedLockOut is number 8: unauthenticated connections use up the limit of
// an address, and then the limit of the broker. A client that authenticates is
// accepted, also from one of these addresses.
func unauthenticatedLockOut(s *scene) {
	const each = 100 // unauthenticated connections of one address
	ip := func(i int) net.IP { return net.IPv4(127, 0, 4, byte(1+i/each)) }
	for _, outsiders := range []int{1000, 2000} { // of 2,000 connections in all
		var connected atomic.Int64
		together(outsiders, 32, func(i int) {
			nc, err := s.dialFrom(s.ctx, ip(i))
			if err != nil {
				return
			}
			connected.Add(1)
			s.Cleanup(func() { nc.Close() })
			_, _ = io.WriteString(nc, "AMQP\x03\x01\x00\x00")
		})
		in := 0
		for i := range 20 {
			p, err := s.connect(ip(i * each % outsiders))
			if err == nil {
				err = p.within(patience).login(root)
			}
			if err != nil {
				s.Logf("login %d: %v", i, err)
				continue
			}
			in++
		}
		s.Logf("%d unauthenticated connections, %d of 20 logins were accepted", connected.Load(), in)
		if in < 20 {
			s.Errorf("beside %d unauthenticated connections %d of 20 valid logins were accepted", outsiders, in)
		}
	}
}

// browsers is number 17: what a web page can make a browser do.
func browsers(s *scene) {
	s.foreignForm()
	s.storedPage()
	dev, err := start(s.T.TempDir(), "listeners: ['127.0.0.1:0']\nqueues: [{name: q}]\n", "--dev")
	if err != nil {
		s.Fatal(err)
	}
	defer func() {
		if err := dev.Stop(); err != nil {
			s.Error(err)
		}
	}()
	// A name that leads to this machine: DNS says what the page wants it to.
	nc, err := net.Dial("tcp", dev.Addr)
	if err != nil {
		s.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprintf(nc, "GET /$servicebus/websocket HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		s.Fatal(err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		s.Error("in development a page of another site can open a WebSocket under its own name")
	}
}

// foreignForm posts a form for another site, with the credentials that a browser keeps.
func (s *scene) foreignForm() {
	for _, path := range []string{"/api/v1/queues/site/messages", "/site/messages"} {
		resp, _, err := s.call(s.ctx, root, http.MethodPost, path, strings.NewReader(`{"body": "x"}`),
			"Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain")
		if err != nil {
			s.Error(err)
		} else if resp.StatusCode/100 == 2 {
			s.Errorf("a form of another site was taken at %s: %s", path, resp.Status)
		}
	}
}

// storedPage receives a message that is a page.
func (s *scene) storedPage() {
	text := func(name, value string) message.Pair { return message.Pair{Name: name, Value: codec.String(value)} }
	_, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/site/messages", nil) // remove earlier messages
	s.fill("site", 1, func(int) message.Draft {
		return message.Draft{ContentType: "text/html", Body: []byte("<script>alert(1)</script>"), Application: []message.Pair{
			text("Set-Cookie", "a=b"), text("Access-Control-Allow-Origin", "*"), text("Refresh", "0; url=http://evil.example"),
			text("Clear-Site-Data", "*"), text("Content-Disposition", "inline"), text("Location", "http://evil.example"),
		}}
	})
	resp, _, err := s.call(s.ctx, root, http.MethodPost, "/site/messages/head", nil)
	if err != nil {
		s.Fatal(err)
	}
	h := resp.Header
	if resp.StatusCode != http.StatusCreated {
		s.Errorf("receive over HTTP: %s", resp.Status)
	}
	if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "sandbox") {
		s.Errorf("Content-Security-Policy: %q, want sandbox", csp)
	}
	if h.Get("X-Content-Type-Options") != "nosniff" {
		s.Errorf("X-Content-Type-Options: %q, want nosniff", h.Get("X-Content-Type-Options"))
	}
	if d := h.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") {
		s.Errorf("Content-Disposition: %q, want attachment", d)
	}
	for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin", "Refresh", "Clear-Site-Data"} {
		if v := h.Get(name); v != "" {
			s.Errorf("the sender of a message set the header %s: %q", name, v)
		}
	}
}

// developmentOnANetwork is number 21: the well-known key is accepted only from
// this machine.
func developmentOnANetwork(s *scene) {
	b, err := start(s.T.TempDir(), "queues: [{name: q}]\n", "--dev", "--insecure", "--listen", "0.0.0.0:0")
	if err != nil {
		s.Logf("%v", err)
		return
	}
	b.Kill()
	s.Error("--dev listens on every address")
}

// target is an HTTP server that counts the requests it gets.
func (s *scene) target(answer http.HandlerFunc) (url string, count *atomic.Int64) {
	s.Helper()
	count = new(atomic.Int64)
	t := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		answer(w, r)
	}))
	s.Cleanup(t.Close)
	return t.URL, count
}

// alerting is the configuration of a queue that is late as soon as a message
// waits, and calls a webhook.
func alerting(name, url string) string {
	return fmt.Sprintf(`{"name": %q, "policy": {"classes": [{"name": "c", "level": 5, "objective": {"wait": "1s"}}], "alerts": {"webhook": %q}}}`, name, url)
}

// webhooks is number 20: alerts go to addresses that an entity names.
func webhooks(s *scene) {
	taken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	over := make(chan struct{})
	defer close(over) // before the targets are closed, which wait for their requests
	slow, slowCount := s.target(func(http.ResponseWriter, *http.Request) { <-over })
	private, privateCount := s.target(taken)
	redirect, redirectCount := s.target(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, private, http.StatusTemporaryRedirect)
	})
	fast, fastCount := s.target(taken)

	// By default no address of this machine or of a private network is called.
	forbidden, forbiddenCount := s.target(taken)
	resp, text, err := s.call(s.ctx, root, http.MethodPut, "/api/v1/queues/forbidden", strings.NewReader(alerting("forbidden", forbidden)))
	if err != nil {
		s.Fatal(err)
	}
	s.Logf("a webhook on this machine: %s %.200s", resp.Status, text)
	if resp.StatusCode/100 == 2 {
		s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/forbidden", nil) })
		s.fillSmall("forbidden", 1)
	}

	// Where it is allowed, one target does not block the others.
	b, err := start(s.T.TempDir(), configuration(allowPrivate...))
	if err != nil {
		s.Fatal(err)
	}
	defer func() {
		if err := b.Stop(); err != nil {
			s.Error(err)
		}
	}()
	other := &scene{T: s.T, broker: b, ctx: s.ctx}
	defer other.end()
	for name, url := range map[string]string{"slow": slow, "redirect": redirect} {
		other.define(http.MethodPut, "/queues/"+name, alerting(name, url))
		other.fillSmall(name, 1)
	}
	for range 100 { // until the slow one has been called
		if slowCount.Load() > 0 && redirectCount.Load() > 0 {
			break
		}
		pause(s.ctx, 50*time.Millisecond)
	}
	other.define(http.MethodPut, "/queues/fast", alerting("fast", fast))
	other.fillSmall("fast", 1)
	for range 200 {
		if fastCount.Load() > 0 {
			break
		}
		pause(s.ctx, 50*time.Millisecond)
	}
	s.Logf("calls: slow %d, redirect %d, its target %d, fast %d, forbidden %d times",
		slowCount.Load(), redirectCount.Load(), privateCount.Load(), fastCount.Load(), forbiddenCount.Load())
	if fastCount.Load() == 0 {
		s.Error("a target that answers got no alert while another did not answer")
	}
	if privateCount.Load() > 0 {
		s.Error("a webhook followed a redirect")
	}
	if forbiddenCount.Load() > 0 {
		s.Error("a webhook reached an address of this machine")
	}
}

// allowPrivate lets webhooks reach this machine.
var allowPrivate = []string{"webhookNetworks: ['127.0.0.0/8']"}
