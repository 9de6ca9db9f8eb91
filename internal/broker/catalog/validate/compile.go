// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/filter/value"
)

// Filter compiles the filter of a rule.
func Filter(f entity.Filter) (filter.Filter, error) {
	switch f.Kind {
	case entity.TrueFilter:
		return filter.Constant(true), nil
	case entity.FalseFilter:
		return filter.Constant(false), nil
	case entity.CorrelationFilter:
		return correlation(f.Correlation)
	}
	params, err := parameters(f.Parameters)
	if err != nil {
		return nil, err
	}
	return filter.Parse(f.SQL, params)
}

func correlation(c *entity.Correlation) (filter.Filter, error) {
	properties, err := parameters(c.Properties)
	if err != nil {
		return nil, err
	}
	fc := &filter.Correlation{
		CorrelationID: c.CorrelationID, MessageID: c.MessageID, To: c.To, ReplyTo: c.ReplyTo,
		Subject: c.Label, SessionID: c.SessionID, ReplyToSessionID: c.ReplyToSessionID,
		ContentType: c.ContentType, Properties: properties,
	}
	return fc, fc.Validate()
}

func parameters(values map[string]entity.Value) (filter.Params, error) {
	if len(values) == 0 {
		return nil, nil
	}
	params := make(filter.Params, len(values))
	for name, v := range values {
		fv, err := value.ParseTyped(v.Type(), v.String())
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		params[name] = fv
	}
	return params, nil
}

// NewAction is Action for a rule that is not stored yet: it cannot change what only the
// broker and workers set. One that was stored earlier leaves such properties as they are.
func NewAction(a entity.Action) (*filter.Action, error) {
	action, err := Action(a)
	if err != nil {
		return nil, err
	}
	if name := action.Reserved(); name != "" {
		return nil, fmt.Errorf("%s: only a worker that gives a message back sets this property", name)
	}
	return action, nil
}

// Action compiles the action of a rule, which has SQL.
func Action(a entity.Action) (*filter.Action, error) {
	params, err := parameters(a.Parameters)
	if err != nil {
		return nil, err
	}
	return filter.ParseAction(a.SQL, params)
}
