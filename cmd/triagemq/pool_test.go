// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
)

func TestPoolsAreListedPausedAndResized(t *testing.T) {
	c := startCLI(t, "queues:\n  - {name: orders}\n  - {name: reports}\n")
	if o := c.with("", "pool", "list"); o.code != 0 || o.out != "" || o.err != "There are no such pools.\n" {
		t.Errorf("without pools: %+v", o)
	}
	c.fails(cli.ExitFailed, "`triagemq pool list` shows the pools that run", "pool", "pause", "low")

	worker := c.Client()
	announce := func(r client.PoolReport) client.PoolOrders {
		t.Helper()
		r.Host, r.Process = "box", 7
		orders, err := worker.AnnouncePool(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return orders
	}
	high := client.PoolReport{Name: "high", Instance: "1", Sources: []string{"orders"}, Slots: 2, Busy: 1}
	low := client.PoolReport{Name: "low", Instance: "1", Sources: []string{"orders", "reports"}, Slots: 4, Busy: 4, Suspended: 1, Retrying: 2}
	second := low
	second.Instance, second.Idle, second.Busy = "2", "outside its windows", 0
	all := func() { announce(high); announce(low); announce(second) }
	all()
	c.want(`NAME  SOURCES          STATE    PROCESSES  SLOTS  BUSY  SUSPENDED  RETRYING  DONE/S  DONE  FAILED
high  orders           working          1      2     1          0         0     0.0     0       0
low   orders, reports  working          2      8     4          2         4     0.0     0       0
`, "pool", "list")
	c.want(`NAME  HOST  PROCESS  STATE                SLOTS  BUSY  SUSPENDED  RETRYING  DONE/S
low   box         7  working                  4     4          1         2     0.0
low   box         7  outside its windows      4     0          1         2     0.0
`, "pool", "list", "--processes", "--prefix", "l")

	c.want("Paused pool low at orders, 2 processes.\n", "pool", "pause", "low")
	if o := announce(low); !o.Paused || o.Revision == 0 {
		t.Errorf("orders %+v, want a pause", o)
	}
	if o := announce(high); o.Paused {
		t.Errorf("orders of another pool: %+v", o)
	}
	c.want("Resized pool low at orders, 2 processes.\n", "pool", "resize", "low", "3", "--source", "orders")
	all()
	c.want(`NAME  SOURCES          STATE    PROCESSES        SLOTS  BUSY  SUSPENDED  RETRYING  DONE/S  DONE  FAILED
high  orders           working          1            2     1          0         0     0.0     0       0
low   orders, reports  paused           2  8 (ordered)     4          2         4     0.0     0       0
`, "pool", "list")
	c.want("Resumed pool low at orders, 2 processes.\n", "pool", "resume", "low")
	if o := announce(low); o.Paused || o.Slots != 3 {
		t.Errorf("orders %+v, want 3 slots and no pause", o)
	}

	var answer struct{ Items []struct{ Name string } }
	if err := json.Unmarshal([]byte(c.do("pool", "resize", "low", "0", "--json")), &answer); err != nil || len(answer.Items) != 1 || answer.Items[0].Name != "low" {
		t.Errorf("in JSON: %+v, %v", answer, err)
	}
	var items []struct{ Slots int }
	if err := json.Unmarshal([]byte(c.do("pool", "list", "--json")), &items); err != nil || len(items) != 2 || items[1].Slots != 8 {
		t.Errorf("list in JSON: %+v, %v", items, err)
	}
	c.fails(cli.ExitUsage, "is no number of slots", "pool", "resize", "low", "many")
	c.fails(cli.ExitUsage, "", "pool", "pause")
	c.fails(cli.ExitFailed, "at most 10000", "pool", "resize", "low", "10001")
	c.fails(cli.ExitFailed, "no such pool", "pool", "resume", "low", "--source", "reports")

	// A process that leaves is gone at once; what it was ordered is kept.
	low.Leaving, second.Leaving = true, true
	announce(low)
	announce(second)
	c.do("pool", "pause", "low")
	c.want(`NAME  SOURCES          STATE                PROCESSES  SLOTS  BUSY  SUSPENDED  RETRYING  DONE/S  DONE  FAILED
low   orders, reports  paused, not running          0      0     0          0         0     0.0     0       0
`, "pool", "list", "--prefix", "low")
}
