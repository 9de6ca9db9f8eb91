// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
)

// property is one of an entity that a flag can set. The flag is called like the
// property: lockDuration is set by --lock-duration.
type property struct {
	name  string
	kind  propertyKind
	usage string
}

// propertyKind is how a property is written.
type propertyKind string

const (
	aDuration propertyKind = "duration"
	aNumber   propertyKind = "number"
	aSwitch   propertyKind = "switch"
	aText     propertyKind = "text"
	aFile     propertyKind = "file" // with JSON or YAML in it
)

// flag is the property's name as flags are written.
func (p property) flag() string {
	var b strings.Builder
	for _, r := range p.name {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// define adds the flags of properties to a command.
func define(cmd *cobra.Command, properties []property) {
	for _, p := range properties {
		switch p.kind {
		case aSwitch:
			cmd.Flags().Bool(p.flag(), false, p.usage)
		default:
			cmd.Flags().String(p.flag(), "", p.usage)
		}
	}
}

// defined returns the properties that flags set, as JSON has them.
func defined(cmd *cobra.Command, properties []property) (map[string]any, error) {
	out := map[string]any{}
	for _, p := range properties {
		flag := cmd.Flags().Lookup(p.flag())
		if !flag.Changed {
			continue
		}
		v, err := p.parse(flag.Value.String())
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--%s: %w", p.flag(), err))
		}
		out[p.name] = v
	}
	return out, nil
}

func (p property) parse(text string) (any, error) {
	switch p.kind {
	case aDuration:
		d, err := entity.ParseDuration(text)
		return d.String(), err
	case aNumber:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return n, nil
	case aSwitch:
		return text == "true", nil
	case aFile:
		content, err := os.ReadFile(text)
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSON(content) // JSON is YAML too
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		return json.RawMessage(asJSON), nil
	}
	return text, nil
}

// The properties of each kind of entity that flags can set.
var (
	lifetimeProperties = []property{
		{"defaultMessageTimeToLive", aDuration, "how `long` messages are kept that do not say so: 14d, forever"},
		{"autoDeleteOnIdle", aDuration, "delete it after being unused for so `long`, at least 5m"},
		{"status", aText, "`state`: Active, Disabled, SendDisabled or ReceiveDisabled"},
		{"userMetadata", aText, "`text` for your own use"},
	}
	sizeProperties = []property{
		{"maxSizeInMegabytes", aNumber, "`megabytes` it may hold"},
		{"maxMessageSizeInKilobytes", aNumber, "`kilobytes` a message may have"},
		{"requiresDuplicateDetection", aSwitch, "drop messages whose id was seen before; only at creation"},
		{"duplicateDetectionHistoryTimeWindow", aDuration, "how `long` ids are remembered"},
	}
	readingProperties = []property{
		{"lockDuration", aDuration, "how `long` a receiver has a message to itself: 5s to 5m"},
		{"maxDeliveryCount", aNumber, "`failures` after which a message is a dead letter"},
		{"maxMessageCount", aNumber, "`messages` it may hold; 0 is any number"},
		{"requiresSession", aSwitch, "accept and deliver only messages of sessions; only at creation"},
		{"deadLetteringOnMessageExpiration", aSwitch, "make dead letters of messages that ran out of time"},
		{"forwardTo", aText, "queue or topic to pass messages on `to`"},
		{"forwardDeadLetteredMessagesTo", aText, "queue or topic to pass dead letters on `to`"},
		{"policy", aFile, "`file` with a priority policy, JSON or YAML"},
	}
)

// unsetFlag brings properties back to their defaults.
func unsetFlag(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringSliceVar(into, "unset", nil, "`property` to bring back to its default; may be repeated")
}
