// SPDX-License-Identifier: Apache-2.0

package measure

import "github.com/triagemq/triagemq/internal/objective"

// DemandOptions are the limits of the number of workers.
type DemandOptions struct {
	Headroom float64 // zero is objective.DefaultHeadroom; negative is none
	Floor    int
	Ceiling  int // zero is no limit
}

// Demand is how many workers a queue needs now. Its JSON is what KEDA's
// metrics-api scaler reads at valueLocation "value".
type Demand struct {
	Value  int    `json:"value"`
	Entity string `json:"entity"`
	objective.DemandResult
}

// Demand returns how many workers are needed to meet the objectives; see objective.Demand
// for the formula.
func (r Objectives) Demand(o DemandOptions) Demand {
	in := objective.DemandInput{
		Headroom: o.Headroom, Floor: o.Floor, Ceiling: o.Ceiling,
		Running: int(r.Locked),
	}
	for _, c := range r.Classes {
		in.Classes = append(in.Classes, c.Load())
	}
	d := Demand{Entity: r.Entity, DemandResult: objective.Demand(in)}
	d.Value = d.Workers
	return d
}
