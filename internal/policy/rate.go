// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of messages in a length of time: 500/s, 30/m. The zero value is no
// limit. The number may arrive at once: 30/m is thirty in the first second and then one
// every two seconds.
type Rate struct {
	Count float64
	Per   time.Duration
}

var errRate = errors.New("not a rate such as 500/s, 30/m or 1000/h")

// rateUnits are the units of a rate with their names.
var rateUnits = []struct {
	name string
	per  time.Duration
}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

// parseRate reads a rate; a number alone is per second.
func parseRate(text string) (Rate, error) {
	number, unit, found := strings.Cut(strings.TrimSpace(text), "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return Rate{}, fmt.Errorf("%q is %w", text, errRate)
	}
	if !found {
		return Rate{n, time.Second}, nil
	}
	for _, u := range rateUnits {
		if strings.TrimSpace(unit) == u.name {
			return Rate{n, u.per}, nil
		}
	}
	return Rate{}, fmt.Errorf("%q is %w", text, errRate)
}

// PerSecond returns the rate in messages per second; zero is no rate.
func (r Rate) PerSecond() float64 {
	if r.Per <= 0 {
		return 0
	}
	return r.Count / r.Per.Seconds()
}

// Burst returns how many may arrive at once: the number of the rate, at least one.
func (r Rate) Burst() float64 { return max(r.Count, 1) }

// String returns the rate as a policy spells it.
func (r Rate) String() string {
	number := strconv.FormatFloat(r.Count, 'g', -1, 64)
	for _, u := range rateUnits {
		if u.per == r.Per {
			return number + "/" + u.name
		}
	}
	return number
}
