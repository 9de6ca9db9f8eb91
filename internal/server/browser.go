// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
)

// A browser sends what a page tells it to, with credentials that the page does not
// know: a name and key that it has kept, a client certificate, or in development
// none. The checks here keep pages of other sites from using that.

// Errors of requests that a browser makes for another site.
var (
	errForeignPage = errors.New("server: the request is made by a page of another site")
	errForeignHost = errors.New("server: the request is for a host name that is not ours")
)

// crossOrigin knows the headers by which browsers say for whom they act.
var crossOrigin = http.NewCrossOriginProtection()

// checkHost refuses a request for a host name that is not known to be ours. A page can
// make its own name lead to our address (DNS rebinding), and the browser then takes
// us for the page's own site. Where a key is needed that gains nothing, because the
// browser has none for that name, and any name is good unless some are configured.
func (f *frontend) checkHost(r *http.Request) error {
	if !f.cfg.trusting() && len(f.cfg.Security.Hosts) == 0 {
		return nil
	}
	if host := hostname(r.Host); !isLocalName(host) && !slices.ContainsFunc(f.cfg.Security.Hosts,
		func(ours string) bool { return strings.EqualFold(hostname(ours), host) }) {
		return errForeignHost
	}
	return nil
}

// hostname returns the name in host or host:port, without the dot of a full name.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// isLocalName reports whether a host is one that no page can have as its own and lead
// to us: localhost, an address, or none, which browsers never send.
func isLocalName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(host)
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// checkRequest refuses what a browser sends on behalf of a page of another site.
func (f *frontend) checkRequest(r *http.Request) error {
	if err := f.checkHost(r); err != nil {
		return err
	}
	if crossOrigin.Check(r) != nil {
		return errForeignPage
	}
	return nil
}

// checkWebSocket refuses a page of another site if the browser lends it what it does
// not know. With a key, which is proved in the stream, a page of any site may connect.
func (f *frontend) checkWebSocket(r *http.Request, conn *handed) error {
	if err := f.checkHost(r); err != nil {
		return err
	}
	if !f.cfg.trusting() && conn.certificate == "" {
		return nil
	}
	// The check is made for requests that change something, as a WebSocket may.
	r = r.Clone(r.Context())
	r.Method = http.MethodPost
	if crossOrigin.Check(r) != nil {
		return errForeignPage
	}
	return nil
}

// refuseForeign answers a request that a check has refused.
func refuseForeign(w http.ResponseWriter, err error) {
	text := "Requests made by pages of other sites are refused."
	if errors.Is(err, errForeignHost) {
		text = "The host name of this request is not known here: use localhost or an address, or add the name to security.hosts."
	}
	respond(w, http.StatusForbidden, "application/json", `{"error":{"code":"foreign","message":"`+text+`"}}`+"\n")
}

// protect sets the headers that keep a browser from making more of an answer than the
// data it is. A handler of pages sets others.
func protect(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// forwarded are the headers by which a proxy says that the request is not its own.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// authorityFor returns who decides about a request. One that a proxy has passed on is
// not of this machine, wherever the proxy runs.
func (f *frontend) authorityFor(r *http.Request) access.Authority {
	peer := r.Context().Value(connKey{}).(*handed).RemoteAddr()
	for _, name := range forwarded {
		if r.Header.Get(name) != "" {
			return f.refusals.Watch(f.strict, peer)
		}
	}
	return f.authority(peer)
}
