// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math/rand/v2"
	"testing"
)

func TestCounterTakesPieces(t *testing.T) {
	root := New(10 * pieceSize)
	a := root.Child(10 * pieceSize)
	c := NewCounter(a)
	steps := func() int64 { return a.Used() }
	piece := c.piece
	for range 100 {
		if !c.Take(10) {
			t.Fatal("no space at the beginning")
		}
	}
	if steps() != piece || c.Used() != 1000 {
		t.Errorf("%d are charged for %d, want one piece of %d", steps(), c.Used(), piece)
	}
	if !c.Take(3 * piece) {
		t.Fatal("no space for a large charge")
	}
	c.Release(3 * piece)
	if steps() > 3*piece {
		t.Errorf("%d are still charged for %d", steps(), c.Used())
	}
	c.Close()
	wantUsed(t, root, 0)
}

// Near the limit a whole piece does not fit: then exactly the requested bytes
// are charged.
func TestCounterUsesTheLastByte(t *testing.T) {
	root := New(1000)
	root.Charge(1)
	c := NewCounter(root)
	if !c.Take(990) || c.Take(10) || !c.Take(9) {
		t.Error("the last bytes cannot be used, or more than all of them")
	}
	if !c.Short() {
		t.Error("there is space in a full account")
	}
	c.Add(500)
	wantUsed(t, root, 1500)
	c.Release(1400)
	if c.Short() {
		t.Error("there is no space")
	}
	c.Close()
	wantUsed(t, root, 1)
}

func TestCounterWithoutAccount(t *testing.T) {
	c := NewCounter(nil)
	if !c.Take(1<<50) || c.Short() {
		t.Error("there is a limit without an account")
	}
	c.Add(5)
	c.Release(5)
	c.Close()
}

// However it is used: what is charged is what is counted, and at most two pieces.
func TestCounterKeepsInStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	root := New(20 * pieceSize)
	c := NewCounter(root)
	var taken []int64
	var sum int64
	for range 20000 {
		n := rng.Int64N(2 * pieceSize)
		switch rng.IntN(3) {
		case 0:
			if c.Take(n) {
				taken, sum = append(taken, n), sum+n
			}
		case 1:
			if rng.IntN(10) == 0 {
				c.Add(n)
				taken, sum = append(taken, n), sum+n
			}
		default:
			if len(taken) > 0 {
				i := rng.IntN(len(taken))
				c.Release(taken[i])
				sum -= taken[i]
				taken = append(taken[:i], taken[i+1:]...)
			}
		}
		if c.Used() != sum || root.Used() < sum || root.Used() > sum+2*c.piece {
			t.Fatalf("%d are charged and %d counted, want %d", root.Used(), c.Used(), sum)
		}
	}
	c.Close()
	wantUsed(t, root, 0)
}

func BenchmarkCounter(b *testing.B) {
	a := New(1 << 30)
	b.RunParallel(func(pb *testing.PB) {
		c := NewCounter(a)
		for pb.Next() {
			if c.Take(100) {
				c.Release(100)
			}
		}
	})
}
