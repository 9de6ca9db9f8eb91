// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"fmt"
	"strings"
)

// Status says which way messages may pass. The zero value means Active.
type Status string

// The four states of an entity, spelt as on the wire.
const (
	Active          Status = "Active"
	Disabled        Status = "Disabled"
	SendDisabled    Status = "SendDisabled"
	ReceiveDisabled Status = "ReceiveDisabled"
)

// CanSend reports whether messages may enter.
func (s Status) CanSend() bool { return s != Disabled && s != SendDisabled }

// CanReceive reports whether messages may leave.
func (s Status) CanReceive() bool { return s != Disabled && s != ReceiveDisabled }

// ParseStatus reads a status in any case.
func ParseStatus(text string) (Status, error) {
	for _, s := range []Status{Active, Disabled, SendDisabled, ReceiveDisabled} {
		if strings.EqualFold(text, string(s)) {
			return s, nil
		}
	}
	return "", fmt.Errorf("%q is not Active, Disabled, SendDisabled or ReceiveDisabled", text)
}

// UnmarshalText reads a status in any case.
func (s *Status) UnmarshalText(text []byte) error {
	v, err := ParseStatus(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}
