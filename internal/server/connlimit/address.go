// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"net"
	"net/netip"
)

// IsLocal reports whether an address to listen on is reached from this machine
// only. A name counts as such only if it is localhost.
func IsLocal(addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, err
	}
	if host == "localhost" {
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback(), nil
}

// ipOf returns the IP address of a peer; the zero Addr if it has none.
func ipOf(addr net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// IsLoopback reports whether a peer is on this machine.
func IsLoopback(addr net.Addr) bool { return ipOf(addr).IsLoopback() }
