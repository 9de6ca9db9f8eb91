// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"errors"
)

// Sizes that are part of the protocol [AMQP 2.3, 2.8.19].
const (
	HeaderSize   = 8
	MinFrameSize = 512 // every peer takes frames of this size
)

// Type says which layer a frame belongs to [AMQP 2.3.1, 5.3.1].
type Type uint8

// The frame types.
const (
	TypeAMQP Type = 0
	TypeSASL Type = 1
)

// ErrHeader says that a frame header contradicts itself.
var ErrHeader = errors.New("frame: malformed frame header")

// Header is the fixed part of a frame.
type Header struct {
	Size    uint32 // of the whole frame
	Doff    uint8  // where the body begins, in words of four bytes
	Type    Type
	Channel uint16 // meaningless in SASL frames
}

// ParseHeader reads the header at the front of b, which has at least HeaderSize
// bytes.
func ParseHeader(b []byte) Header {
	return Header{
		Size:    binary.BigEndian.Uint32(b),
		Doff:    b[4],
		Type:    Type(b[5]),
		Channel: binary.BigEndian.Uint16(b[6:]),
	}
}

// Body returns the body of the frame b, which has this header.
func (h Header) Body(b []byte) ([]byte, error) {
	at := int(h.Doff) * 4
	if at < HeaderSize || at > len(b) {
		return nil, ErrHeader
	}
	return b[at:], nil
}

// AppendHeader appends a frame header whose size SetSize sets when the frame is
// complete.
func AppendHeader(dst []byte, t Type, channel uint16) []byte {
	return append(dst, 0, 0, 0, 0, 2, byte(t), byte(channel>>8), byte(channel))
}

// SetSize sets the size of the frame that starts at start and ends with b.
func SetSize(b []byte, start int) {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
}

// ProtocolID is the layer that a protocol header announces [AMQP 2.2].
type ProtocolID uint8

// The protocol ids. TLS inside of AMQP is not supported: no known client uses
// it.
const (
	ProtocolAMQP ProtocolID = 0
	ProtocolTLS  ProtocolID = 2
	ProtocolSASL ProtocolID = 3
)

// AppendProtocol appends the protocol header of version 1.0.0 for id.
func AppendProtocol(dst []byte, id ProtocolID) []byte {
	return append(dst, 'A', 'M', 'Q', 'P', byte(id), 1, 0, 0)
}

// ParseProtocol reads a protocol header of eight bytes. It is false for anything
// but version 1.0.0 of AMQP.
func ParseProtocol(b []byte) (ProtocolID, bool) {
	ok := len(b) >= 8 && string(b[:4]) == "AMQP" && b[5] == 1 && b[6] == 0 && b[7] == 0
	if !ok {
		return 0, false
	}
	return ProtocolID(b[4]), true
}
