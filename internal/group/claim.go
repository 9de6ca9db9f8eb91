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
	version uint64 // 0 is that there is none
	at      int64
}

func (c *claim) etag() string { return strconv.FormatUint(c.version, 10) }

// Claim claims a partition for a processor that balances by itself. It wins if nobody has
// claimed it since the claim was read, and gets another ETag.
func (s *Groups) Claim(now time.Time, name string, o Ownership, out *machine.Effects) (won bool, _ Ownership, err error) {
	g, p, err := s.openPart(name, o.Partition)
	switch {
	case err != nil:
		return false, Ownership{}, err
	case len(o.Owner) > maxName:
		return false, Ownership{}, ErrName
	case len(g.members) > 0:
		return false, Ownership{}, ErrCoordinated
	case p.claim.version == 0 && o.ETag != "", p.claim.version != 0 && o.ETag != p.claim.etag():
		return false, Ownership{}, nil
	}
	at := s.stamp(now)
	p.claim = claim{owner: o.Owner, version: max(p.claim.version+1, uint64(at)), at: at}
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
	for n := range g.parts {
		if p := &g.parts[n]; p.claim.version != 0 {
			claims = append(claims, p.ownership(n))
		}
	}
	return claims
}
