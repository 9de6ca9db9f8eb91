// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written 64MiB, 10MB or 4096.
type Size int64

// sizeUnits are tried in this order: longer names first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// parseSize reads a size.
func parseSize(text string) (Size, error) {
	for _, unit := range sizeUnits {
		number, ok := cutUnit(strings.TrimSpace(text), unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			break
		}
		return Size(n * unit.bytes), nil
	}
	return 0, fmt.Errorf("%q is not a size such as 4096, 256KB or 64MiB", text)
}

// cutUnit is strings.CutSuffix in any case.
func cutUnit(s, unit string) (string, bool) {
	at := len(s) - len(unit)
	if at < 0 || !strings.EqualFold(s[at:], unit) {
		return "", false
	}
	return s[:at], true
}

// String writes the size in the largest binary unit that divides it.
func (s Size) String() string {
	for _, name := range []string{"TiB", "GiB", "MiB", "KiB"} {
		for _, unit := range sizeUnits {
			if unit.name == name && s > 0 && int64(s)%unit.bytes == 0 {
				return strconv.FormatInt(int64(s)/unit.bytes, 10) + name
			}
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
