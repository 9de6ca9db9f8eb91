// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// broker is where the example runs.
type broker struct {
	http, amqp string
	key        string
	length     time.Duration // of each lane
	states     map[string]string
}

// do sends a request to the broker's JSON API.
func (b *broker) do(ctx context.Context, method, path, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, b.http+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth("RootManageSharedAccessKey", b.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotFound {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// define makes the queue anew and returns what follows from its policy.
func (b *broker) define(ctx context.Context, queue, policy string) ([]string, error) {
	if err := b.do(ctx, http.MethodDelete, "/queues/"+queue, "", nil); err != nil {
		return nil, err
	}
	if err := b.do(ctx, http.MethodPut, "/queues/"+queue, `{"policy": `+policy+`}`, nil); err != nil {
		return nil, err
	}
	var state struct {
		Consequences []string `json:"consequences"`
	}
	err := b.do(ctx, http.MethodGet, "/policies/"+queue, "", &state)
	return state.Consequences, err
}

// objectives prints the state of the objectives, as `triagemq objectives` does.
func (b *broker) objectives(ctx context.Context, w io.Writer, queue string) error {
	var report struct {
		Classes []struct {
			Name      string  `json:"name"`
			Waiting   int     `json:"waiting"`
			OldestAge float64 `json:"oldestAge"`
			Objective struct {
				State string  `json:"state"`
				Late  float64 `json:"overdue"`
			} `json:"objective"`
		} `json:"classes"`
	}
	if err := b.do(ctx, http.MethodGet, "/objectives/"+queue, "", &report); err != nil {
		return err
	}
	b.states = map[string]string{}
	for _, c := range report.Classes {
		b.states[c.Name] = c.Objective.State
		fmt.Fprintf(w, "  objective of %-6s %-8s %4d waiting, the oldest for %.1fs, %.0f late already\n",
			c.Name, c.Objective.State+",", c.Waiting, c.OldestAge, c.Objective.Late)
	}
	return nil
}
