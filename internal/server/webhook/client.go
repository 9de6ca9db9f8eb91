// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// deniedError means that a webhook is at an address that webhooks may not reach.
type deniedError struct{ ip netip.Addr }

func (e *deniedError) Error() string {
	return fmt.Sprintf("the webhook is at %s, which is not a public address; security.webhookNetworks can allow it", e.ip)
}

func isDenied(err error) bool {
	_, ok := errors.AsType[*deniedError](err)
	return ok
}

// newClient returns a client for addresses that a client has chosen: one that
// may manage one queue must not make the broker talk to what only the broker can
// reach. The address is checked when the connection is made, after its name was
// looked up, so that it does not help to change what the name means; redirects are
// not followed; and there is no proxy that would be asked instead.
func newClient(networks []netip.Prefix) *http.Client {
	dialer := &net.Dialer{
		Timeout: postTimeout,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			ip := at.Addr().Unmap().WithZone("")
			if isPublic(ip) || slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
				return nil
			}
			return &deniedError{ip}
		},
	}
	return &http.Client{
		Timeout: postTimeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			MaxIdleConns:           maxPosts,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: maxAnswer,
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// special are the networks that are not the public Internet, of the registries of
// special-purpose addresses [RFC 6890], besides those that netip knows. In IPv6 they
// are parts of 2000::/3, the only part of it that is in public use.
var special = prefixes(`0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4
	2001::/23 2001:db8::/32 2002::/16 3fff::/20`)

var (
	publicIPv6 = netip.MustParsePrefix("2000::/3")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(text string) []netip.Prefix {
	var ps []netip.Prefix
	for p := range strings.FieldsSeq(text) {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}

// isPublic reports whether an address is one of the public Internet. In a network that
// has IPv6 alone, IPv4 addresses are part of others.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !ip.IsValid(), ip.IsUnspecified(), ip.IsLoopback(), ip.IsPrivate(), ip.IsMulticast(), ip.IsLinkLocalUnicast():
		return false
	case ip.Is6() && !publicIPv6.Contains(ip):
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}
