// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/client"
)

// run is a processor while it runs.
type run struct {
	processor *Processor
	settings  settings
}

func newRun(_ context.Context, p *Processor, s settings) *run { return &run{processor: p, settings: s} }

func (r *run) loop(context.Context) error                     { return errNotYet }
func (r *run) pauseChanged(string)                            {}
func (r *run) rewind(context.Context, string, Position) error { return errNotYet }
func (r *run) status() Status                                 { return Status{ID: r.settings.id} }

// pump reads and handles one partition, for one grant of it.
type pump struct {
	run   *run
	grant grant
}

func (p *pump) checkpointByHand(context.Context, client.SeqNo) error { return errNotYet }
func (p *pump) done(client.SeqNo)                                    {}
func (p *pump) giveUp(time.Duration)                                 {}
func (p *pump) lag() time.Duration                                   { return 0 }
