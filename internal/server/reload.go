// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/server/credentials"
	"github.com/triagemq/triagemq/internal/vfs"
)

// follow brings keys, certificates and entities in line with each configuration that
// comes, and reads keys and certificates again when asked to. What cannot be followed
// is reported and does not end the broker.
//
// Once the broker is up, which is when others know whom to ask, the keys are read again:
// they may have been changed since they were read, when no process could ask.
func (b *built) follow(ctx context.Context, up <-chan struct{}) error {
	files := b.cfg.TLS
	for {
		select {
		case <-up:
			up = nil
			b.catchUp()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.cfg.Reload: // never, if there is no channel
			b.reload(files)
		case cfg := <-b.cfg.Changes: // never, if there is no channel
			b.keys.configured = access.OfEntity(cfg.Security.Rules)
			if cfg.TLS.CertFile != "" {
				files = cfg.TLS
			}
			b.reload(files)
			b.apply(ctx, cfg)
		}
	}
}

func (b *built) apply(ctx context.Context, cfg config.Config) {
	unapplied, err := define(ctx, b.broker, cfg, b.log)
	if err != nil {
		unapplied = append(unapplied, err.Error())
	}
	b.front.unapplied.Store(&unapplied)
	switch {
	case err != nil:
		b.log.Error("the configuration could not be applied", "err", err)
	case len(unapplied) > 0:
		b.log.Warn("the configuration was applied again, except for parts of it")
	default:
		b.log.Info("the configuration was applied again")
	}
}

// catchUp takes over keys that were changed while the broker started.
func (b *built) catchUp() {
	before := b.keys.kept
	if err := b.keys.reload(); err != nil {
		b.log.Error("the keys could not be read again; those from before stay", "err", err)
	} else if !slices.Equal(before, b.keys.kept) {
		b.log.Info("the keys were changed during the start; the new ones hold")
	}
}

// reload reads keys and certificates again. Those that cannot be read stay as they
// were.
func (b *built) reload(files config.TLS) {
	if err := b.keys.reload(); err != nil {
		b.log.Error("the keys could not be read again; those from before stay", "err", err)
	} else {
		for _, r := range b.keys.configured {
			if len(b.keys.kept.Named(r.Name)) > 0 {
				b.log.Warn("the configuration has a rule in place of the one in "+credentials.RulesFile, "key", r.Name)
			}
		}
		b.log.Info("the keys were read again", "rules", len(b.keys.all()))
	}
	ends, err := b.front.reloadTLS(files)
	switch {
	case err != nil:
		b.log.Error("the certificate could not be read again; the one from before stays", "err", err)
	case !ends.IsZero():
		b.log.Info("the certificate was read again; new connections get it", "expires", ends)
	}
}

// keys are the rules of the namespace and where they come from. Once the broker runs,
// they belong to the goroutine of follow.
type keys struct {
	fs         vfs.FS
	keeper     *access.RuleAuthority
	kept       access.Rules // in the store
	configured access.Rules // in the configuration; they win
}

func (k *keys) all() access.Rules { return k.kept.With(k.configured) }

// reload reads the rules that are kept in the store again, and puts them and those of
// the configuration into force. If they cannot be read, only the latter may change.
func (k *keys) reload() error {
	kept, err := credentials.ReadRules(k.fs)
	switch {
	case err == nil:
		k.kept = kept
	case errors.Is(err, fs.ErrNotExist) && len(k.kept) == 0: // in development there are none
		err = nil
	}
	k.keeper.Set(k.all())
	return err
}
