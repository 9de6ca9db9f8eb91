// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/processor"
)

// record is an ownership or a checkpoint as the store's protocol has it.
type record struct {
	Partition, Owner, ETag string
	Modified               time.Time
	SeqNo                  int64
	Offset                 string
}

// serveStore serves a store in memory to the instances of one fleet.
func serveStore() *httptest.Server {
	store := processor.NewMemoryStore()
	mux := http.NewServeMux()
	handle := func(path string, f func(ctx context.Context, in []record) ([]record, error)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			var in []record
			err := json.NewDecoder(r.Body).Decode(&in)
			var out []record
			if err == nil {
				out, err = f(r.Context(), in)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(out)
		})
	}
	handle("/owners", func(ctx context.Context, _ []record) ([]record, error) {
		list, _, err := store.ListOwnership(ctx, processor.Scope{})
		return owners(list), err
	})
	handle("/claim", func(ctx context.Context, in []record) ([]record, error) {
		var claims []processor.Ownership
		for _, r := range in {
			claims = append(claims, processor.Ownership{Partition: r.Partition, Owner: r.Owner, ETag: r.ETag})
		}
		won, err := store.ClaimOwnership(ctx, claims)
		return owners(won), err
	})
	handle("/checkpoints", func(ctx context.Context, _ []record) ([]record, error) {
		list, err := store.ListCheckpoints(ctx, processor.Scope{})
		var out []record
		for _, c := range list {
			out = append(out, record{Partition: c.Partition, SeqNo: int64(c.SeqNo), Offset: c.Offset})
		}
		return out, err
	})
	handle("/set", func(ctx context.Context, in []record) ([]record, error) {
		for _, r := range in {
			c := processor.Checkpoint{Partition: r.Partition, SeqNo: client.SeqNo(r.SeqNo), Offset: r.Offset}
			if err := store.SetCheckpoint(ctx, c); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return httptest.NewServer(mux)
}

func owners(list []processor.Ownership) []record {
	out := make([]record, len(list))
	for i, o := range list {
		out[i] = record{Partition: o.Partition, Owner: o.Owner, ETag: o.ETag, Modified: o.Modified}
	}
	return out
}

// remoteStore is the instances' side of it.
type remoteStore string

func (s remoteStore) ask(ctx context.Context, path string, in []record) ([]record, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(s)+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("store: %s", resp.Status)
	}
	var out []record
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

func (s remoteStore) ListOwnership(ctx context.Context, scope processor.Scope) ([]processor.Ownership, time.Time, error) {
	list, err := s.ask(ctx, "/owners", []record{})
	return claimed(scope, list), time.Now(), err // the store's clock is that of this machine
}

func (s remoteStore) ClaimOwnership(ctx context.Context, claims []processor.Ownership) ([]processor.Ownership, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	won, err := s.ask(ctx, "/claim", owners(claims))
	return claimed(claims[0].Scope, won), err
}

func claimed(scope processor.Scope, list []record) []processor.Ownership {
	out := make([]processor.Ownership, len(list))
	for i, r := range list {
		out[i] = processor.Ownership{Scope: scope, Partition: r.Partition, Owner: r.Owner, ETag: r.ETag, Modified: r.Modified}
	}
	return out
}

func (s remoteStore) ListCheckpoints(ctx context.Context, scope processor.Scope) ([]processor.Checkpoint, error) {
	list, err := s.ask(ctx, "/checkpoints", []record{})
	out := make([]processor.Checkpoint, len(list))
	for i, r := range list {
		out[i] = processor.Checkpoint{Scope: scope, Partition: r.Partition, SeqNo: client.SeqNo(r.SeqNo), Offset: r.Offset}
	}
	return out, err
}

func (s remoteStore) SetCheckpoint(ctx context.Context, c processor.Checkpoint) error {
	_, err := s.ask(ctx, "/set", []record{{Partition: c.Partition, SeqNo: int64(c.SeqNo), Offset: c.Offset}})
	return err
}
