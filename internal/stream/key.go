// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/binary"
	"math/bits"
)

// PartitionOf returns the partition of a key. It is the function of the Event Hubs
// SDKs, whose buffered producers choose the partition themselves: another one would
// spread a key over two partitions.
func PartitionOf(key string, partitions int) int {
	c, b := lookup3(key)
	p := int(int16(c^b)) % partitions // keeps the sign
	if p < 0 {
		p = -p
	}
	return p
}

// lookup3 is the hash of Bob Jenkins of that name, with both seeds 0. It gives two
// independent values.
func lookup3(key string) (c, b uint32) {
	a := 0xdeadbeef + uint32(len(key))
	b, c = a, a
	if len(key) == 0 {
		return c, b
	}
	for ; len(key) > 12; key = key[12:] {
		a += word(key)
		b += word(key[4:])
		c += word(key[8:])
		a -= c
		a ^= bits.RotateLeft32(c, 4)
		c += b
		b -= a
		b ^= bits.RotateLeft32(a, 6)
		a += c
		c -= b
		c ^= bits.RotateLeft32(b, 8)
		b += a
		a -= c
		a ^= bits.RotateLeft32(c, 16)
		c += b
		b -= a
		b ^= bits.RotateLeft32(a, 19)
		a += c
		c -= b
		c ^= bits.RotateLeft32(b, 4)
		b += a
	}
	var last [12]byte // what is missing counts as zero
	copy(last[:], key)
	a += binary.LittleEndian.Uint32(last[0:])
	b += binary.LittleEndian.Uint32(last[4:])
	c += binary.LittleEndian.Uint32(last[8:])

	c ^= b
	c -= bits.RotateLeft32(b, 14)
	a ^= c
	a -= bits.RotateLeft32(c, 11)
	b ^= a
	b -= bits.RotateLeft32(a, 25)
	c ^= b
	c -= bits.RotateLeft32(b, 16)
	a ^= c
	a -= bits.RotateLeft32(c, 4)
	b ^= a
	b -= bits.RotateLeft32(a, 14)
	c ^= b
	c -= bits.RotateLeft32(b, 24)
	return c, b
}

// word reads four bytes of a key.
func word(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}
