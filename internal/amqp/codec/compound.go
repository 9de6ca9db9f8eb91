// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"math"
	"time"
)

// Mark is where an open list, map or array began.
type Mark int

// shortHeader is constructor, size8 and count8: Begin reserves space for these,
// as most lists and maps are that small. End inserts more when needed.
const (
	shortHeader = 3
	longHeader  = 9
)

// BeginList opens a list. The caller appends its values and closes it:
//
//	dst, at := codec.BeginList(dst)
//	dst = codec.AppendUint(dst, handle)
//	dst = codec.EndList(dst, at, 1)
func BeginList(dst []byte) ([]byte, Mark) {
	return append(dst, codeList8, 0, 0), Mark(len(dst))
}

// EndList closes the list that began at at and has n values. A list without
// values takes one byte.
func EndList(dst []byte, at Mark, n int) []byte {
	if n == 0 {
		return append(dst[:at], codeList0)
	}
	return endCompound(dst, int(at), n)
}

// BeginMap opens a map, whose keys and values the caller appends in turn.
func BeginMap(dst []byte) ([]byte, Mark) {
	return append(dst, codeMap8, 0, 0), Mark(len(dst))
}

// EndMap closes the map that began at at and has that number of pairs.
func EndMap(dst []byte, at Mark, pairs int) []byte {
	return endCompound(dst, int(at), 2*pairs)
}

// BeginBinary opens a binary whose bytes the caller appends, for a binary that is not to be
// made first and copied then.
func BeginBinary(dst []byte) ([]byte, Mark) {
	return append(dst, codeBinary8+wide, 0, 0, 0, 0), Mark(len(dst))
}

// EndBinary closes the binary that began at at.
func EndBinary(dst []byte, at Mark) []byte {
	binary.BigEndian.PutUint32(dst[at+1:], uint32(len(dst)-int(at)-5))
	return dst
}

// endCompound patches size and count into the header at at. The size counts
// everything after itself, so the count too.
func endCompound(dst []byte, at, count int) []byte {
	size := len(dst) - at - shortHeader + 1
	if size <= math.MaxUint8 && count <= math.MaxUint8 {
		dst[at+1], dst[at+2] = byte(size), byte(count)
		return dst
	}
	dst = append(dst, 0, 0, 0, 0, 0, 0)
	copy(dst[at+longHeader:], dst[at+shortHeader:])
	dst[at] += wide
	binary.BigEndian.PutUint32(dst[at+1:], uint32(len(dst)-at-5))
	binary.BigEndian.PutUint32(dst[at+5:], uint32(count))
	return dst
}

// beginArray opens an array whose elements have the constructor code; they are
// appended without it [AMQP 1.6.24].
func beginArray(dst []byte, code byte) ([]byte, Mark) {
	return append(dst, codeArray8, 0, 0, code), Mark(len(dst))
}

func endArray(dst []byte, at Mark, n int) []byte { return endCompound(dst, int(at), n) }

// AppendIntArray appends an array of ints.
func AppendIntArray(dst []byte, vs []int32) []byte {
	dst, at := beginArray(dst, codeInt)
	for _, v := range vs {
		dst = binary.BigEndian.AppendUint32(dst, uint32(v))
	}
	return endArray(dst, at, len(vs))
}

// AppendLongArray appends an array of longs.
func AppendLongArray(dst []byte, vs []int64) []byte {
	dst, at := beginArray(dst, codeLong)
	for _, v := range vs {
		dst = binary.BigEndian.AppendUint64(dst, uint64(v))
	}
	return endArray(dst, at, len(vs))
}

// AppendTimestampArray appends an array of timestamps.
func AppendTimestampArray(dst []byte, ts []time.Time) []byte {
	dst, at := beginArray(dst, codeTimestamp)
	for _, t := range ts {
		dst = binary.BigEndian.AppendUint64(dst, uint64(t.UnixMilli()))
	}
	return endArray(dst, at, len(ts))
}

// AppendUUIDArray appends an array of UUIDs.
func AppendUUIDArray(dst []byte, vs [][16]byte) []byte {
	dst, at := beginArray(dst, codeUUID)
	for _, v := range vs {
		dst = append(dst, v[:]...)
	}
	return endArray(dst, at, len(vs))
}

// AppendStringArray appends an array of strings.
func AppendStringArray(dst []byte, vs []string) []byte {
	return appendTexts(dst, codeString8, vs)
}

// AppendSymbolArray appends an array of symbols.
func AppendSymbolArray(dst []byte, vs []string) []byte {
	return appendTexts(dst, codeSymbol8, vs)
}

// appendTexts appends an array of texts. One constructor serves all, so a single
// long text makes every length four bytes wide.
func appendTexts(dst []byte, code byte, vs []string) []byte {
	long := false
	for _, v := range vs {
		long = long || len(v) > math.MaxUint8
	}
	if long {
		code += wide
	}
	dst, at := beginArray(dst, code)
	for _, v := range vs {
		if long {
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
		} else {
			dst = append(dst, byte(len(v)))
		}
		dst = append(dst, v...)
	}
	return endArray(dst, at, len(vs))
}
