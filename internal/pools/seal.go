// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// sealText is how many characters a seal has.
const sealText = 2 * sha256.Size

// SetKey sets the key by which orders are sealed, before the registry is used. Orders that
// were given with the same key, before a restart, are learned from reports. Without one
// there is a key for this life only.
func (r *Registry) SetKey(key []byte) { r.key = key }

// seal returns the proof that the broker has given orders to a pool. Processes keep it with
// their orders and show it: they may listen to a queue, which is no right to give orders to
// the others who do.
func (r *Registry) seal(to key, o Orders) string {
	if r.key == nil {
		r.key = []byte(rand.Text())
	}
	mac := hmac.New(sha256.New, r.key)
	fmt.Fprintf(mac, "%q %q %t %d %d", to.name, to.source, o.Paused, o.Slots, o.Revision)
	return hex.EncodeToString(mac.Sum(nil))
}

// sealed reports whether the broker has given orders to a pool.
func (r *Registry) sealed(to key, o Orders) bool {
	return hmac.Equal([]byte(r.seal(to, o)), []byte(o.Seal))
}
