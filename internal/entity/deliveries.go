// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"encoding/json"
	"fmt"
	"math"
)

// Deliveries is how often a message is delivered before it becomes a dead
// letter. The zero value means the default; an explicit zero is
// ErrNoDeliveries.
type Deliveries int32

// ErrNoDeliveries is the fault of an entity that would never deliver a message.
var ErrNoDeliveries = fmt.Errorf("0 is outside 1..%d", math.MaxInt32)

// UnmarshalJSON reads a number other than zero.
func (d *Deliveries) UnmarshalJSON(text []byte) error {
	var n *int32
	if err := json.Unmarshal(text, &n); err != nil || n == nil {
		return err
	}
	if *n == 0 {
		return ErrNoDeliveries
	}
	*d = Deliveries(*n)
	return nil
}
