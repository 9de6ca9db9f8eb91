// SPDX-License-Identifier: Apache-2.0

package group

import (
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// claim is what a processor that balances by itself says about a partition.
type claim struct {
	owner   string
	version uint64 // at least 1
	at      int64
}

// etag is empty if there is no claim.
func (c *claim) etag() string {
	if c == nil {
		return ""
	}
	return strconv.FormatUint(c.version, 10)
}

// claimant returns the name of who claims a partition as the claims before have it: mostly
// the same few do.
func (g *group) claimant(name string) string {
	for i, known := range g.claimants {
		if known == name {
			return g.claimants[i]
		}
	}
	g.claimants[g.nextClaimant%len(g.claimants)] = name
	g.nextClaimant++
	return name
}

// Claim claims a partition for a processor that balances by itself. It wins if nobody has
// claimed it since the claim was read, and gets another ETag.
func (s *Groups) Claim(now time.Time, name string, o Ownership, out *machine.Effects) (won bool, _ Ownership, err error) {
	g, p, err := s.findPart(name, o.Partition)
	var before *claim
	if p != nil {
		before = p.claim
	}
	switch {
	case err != nil:
		return false, Ownership{}, err
	case len(o.Owner) > maxName:
		return false, Ownership{}, ErrName
	case g != nil && len(g.members) > 0:
		return false, Ownership{}, ErrCoordinated
	case o.ETag != before.etag():
		return false, Ownership{}, nil
	}
	next := claim{owner: o.Owner, version: 1}
	if before != nil {
		next.version = before.version + 1
		if before.owner == o.Owner {
			next.owner = before.owner // one of them is enough
		}
	}
	if g, p, err = s.openPart(name, o.Partition, next.cost()-before.cost()); err != nil {
		return false, Ownership{}, err
	}
	next.at = s.stamp(now)
	next.version = max(next.version, uint64(next.at))
	next.owner = g.claimant(next.owner)
	g.setClaim(p, next)
	p.writeClaim(g, o.Partition, out)
	return true, p.ownership(o.Partition), nil
}

func (p *part) ownership(n int) Ownership {
	return Ownership{Partition: n, Owner: p.claim.owner, ETag: p.claim.etag(), Modified: ms(p.claim.at)}
}

// Claims returns the claims that there are.
func (s *Groups) Claims(name string) (claims []Ownership) {
	g := s.find(name)
	if g == nil {
		return nil
	}
	for n, p := range g.used() {
		if p.claim != nil {
			claims = append(claims, p.ownership(n))
		}
	}
	return claims
}
