// SPDX-License-Identifier: Apache-2.0

package slots

// Turns shares turns among sources in proportion to their weights, by smooth weighted
// round robin: with each turn every source gains its weight, and the one with the most
// has the turn and pays the sum of all weights. So 3:1 gives a a b a, not a a a b.
type Turns struct {
	weights []int
	credit  []int
}

// NewTurns returns turns for sources of the given weights, each at least 1.
func NewTurns(weights []int) *Turns {
	return &Turns{weights: weights, credit: make([]int, len(weights))}
}

// Share returns how many of the next n turns each source has. Sources that are empty
// have none, and neither gain nor pay. It returns nil if all are.
func (t *Turns) Share(n int, empty []bool) []int {
	sum := 0
	for i, w := range t.weights {
		if !empty[i] {
			sum += w
		}
	}
	if sum == 0 {
		return nil
	}
	shares := make([]int, len(t.weights))
	for range n {
		best := -1
		for i, w := range t.weights {
			if empty[i] {
				continue
			}
			t.credit[i] += w
			if best < 0 || t.credit[i] > t.credit[best] {
				best = i
			}
		}
		t.credit[best] -= sum
		shares[best]++
	}
	return shares
}

// Return says that a source did not use n of its turns: it had no message. It starts
// anew, so that a source that was empty for long does not catch up at once.
func (t *Turns) Return(source, n int) {
	if n > 0 {
		t.credit[source] = 0
	}
}
