// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/worker"
)

// Names of variables.
const (
	prefix         = "TRIAGEMQ_"
	propertyPrefix = prefix + "PROPERTY_"
)

// Limits of what senders can put into an environment. Linux refuses to start a program
// with a longer value than 128 KiB.
const (
	maxValue = 32 << 10
	maxAll   = 256 << 10
)

// variables collects what a message says about itself.
type variables struct {
	set     []string // NAME=value
	bytes   int
	omitted int
}

// add sets a variable, unless it is empty or cannot be held.
func (v *variables) add(name, value string) {
	if value == "" {
		return
	}
	size := len(name) + len(value)
	if len(value) > maxValue || v.bytes+size > maxAll || strings.ContainsRune(value, 0) {
		v.omitted++
		return
	}
	v.bytes += size
	v.set = append(v.set, prefix+name+"="+value)
}

// environment returns the environment of the program for one message.
func environment(more []string, t *worker.Task) []string {
	var v variables
	v.add("MESSAGE_ID", t.ID)
	v.add("SEQUENCE_NUMBER", strconv.FormatInt(int64(t.SeqNo), 10))
	v.add("SUBJECT", t.Subject)
	v.add("PRIORITY", string(t.Priority))
	if t.Level != nil {
		v.add("LEVEL", strconv.Itoa(int(*t.Level)))
	}
	v.add("CLASS", t.Class)
	v.add("DELIVERY_COUNT", strconv.FormatUint(uint64(t.DeliveryCount), 10))
	if !t.Enqueued.IsZero() {
		v.add("ENQUEUED", t.Enqueued.UTC().Format(time.RFC3339Nano))
	}
	v.add("SESSION", t.Session)
	v.add("CORRELATION_ID", t.CorrelationID)
	v.add("CONTENT_TYPE", t.ContentType)
	v.add("REPLY_TO", t.ReplyTo)
	v.add("SOURCE", t.Source)
	v.add("POOL", t.Pool)

	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(t.Properties)) {
		name := variableName(key)
		if seen[name] {
			v.omitted++
			continue
		}
		seen[name] = true
		v.add("PROPERTY_"+name, text(t.Properties[key]))
	}
	if v.omitted > 0 {
		v.set = append(v.set, prefix+"OMITTED="+strconv.Itoa(v.omitted))
	}
	return slices.Concat(inherited(), more, v.set)
}

// inherited returns the environment of this process without what another message may
// have put there: a program can itself be a worker.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, propertyPrefix) || slices.Contains(messageNames, name)
	})
}

// messageNames are the variables that belong to one message.
var messageNames = []string{
	prefix + "MESSAGE_ID", prefix + "SEQUENCE_NUMBER", prefix + "SUBJECT", prefix + "PRIORITY", prefix + "LEVEL",
	prefix + "CLASS", prefix + "DELIVERY_COUNT", prefix + "ENQUEUED", prefix + "SESSION", prefix + "CORRELATION_ID",
	prefix + "CONTENT_TYPE", prefix + "REPLY_TO", prefix + "SOURCE", prefix + "POOL", prefix + "OMITTED",
}

// variableName returns the name of a property as part of a variable's name.
func variableName(property string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		default:
			return '_'
		}
	}, property)
}

// text returns a property's value as a program reads it.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(v)
	}
}
