// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

var (
	//go:embed resident.html
	residentPage []byte
	//go:embed operations.html
	operationsPage []byte
)

// web serves the pages.
type web struct {
	homes int
	store store
	live  *live
	ops   *operations
	demo  *demo // nil: it runs on its own, and the operations page starts and kills nothing
	log   *slog.Logger
}

func newWeb(c *client.Client, s store, ops *operations, homes int, log *slog.Logger) *web {
	return &web{
		homes: homes, store: s, ops: ops, log: log,
		live: &live{client: c, log: log, watchers: map[string]map[*watcher]struct{}{}},
	}
}

// serve serves the pages until ctx ends.
func (w *web) serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: w.handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, // open streams end with it
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { w.live.run(ctx) })
	wg.Go(func() { w.ops.run(ctx) })
	wg.Go(func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // it has had its second
		}
	})
	err := server.Serve(listener)
	cancel()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (w *web) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page(residentPage))
	mux.HandleFunc("GET /operations", page(operationsPage))
	mux.HandleFunc("GET /api/homes", w.search)
	mux.HandleFunc("GET /api/homes/{home}", w.home)
	mux.HandleFunc("GET /api/homes/{home}/events", w.watchHome)
	mux.HandleFunc("GET /api/operations/events", w.watchOperations)
	if w.demo != nil {
		mux.HandleFunc("GET /api/demo", w.demo.describe)
		mux.HandleFunc("POST /api/instances", w.demo.addInstance)
		mux.HandleFunc("DELETE /api/instances/{name}", w.demo.killInstance)
		mux.HandleFunc("POST /api/sensors/{type}", w.demo.addSensor)
	}
	return http.NewCrossOriginProtection().Handler(mux)
}

func page(text []byte) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		h := rw.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline'; img-src data:; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		_, _ = rw.Write(text) // the browser may have gone
	}
}

// homeOf returns the home that a request names; it answers the request if there is none.
func (w *web) homeOf(rw http.ResponseWriter, r *http.Request) (int, bool) {
	home, err := strconv.Atoi(r.PathValue("home"))
	if err != nil || home < 0 || home >= w.homes {
		http.Error(rw, fmt.Sprintf("homes have the numbers 0 to %d", w.homes-1), http.StatusNotFound)
		return 0, false
	}
	return home, true
}

// homeView is a home as the page gets it.
type homeView struct {
	aggregate
	Address string       `json:"address"`
	Sensors []sensorView `json:"sensors"` // those of the document, with their kind
}

type sensorView struct {
	sensor
	Kind kind `json:"kind"`
}

func view(a aggregate) homeView {
	v := homeView{a, addressOf(a.Home), []sensorView{}}
	for _, s := range a.Sensors {
		v.Sensors = append(v.Sensors, sensorView{s, kindOf(s.Name, s.Value)})
	}
	return v
}

// home returns the stored document.
func (w *web) home(rw http.ResponseWriter, r *http.Request) {
	home, ok := w.homeOf(rw, r)
	if !ok {
		return
	}
	a, _, err := w.store.load(r.Context(), home)
	answer(rw, view(a), err)
}

func answer(rw http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v) // the browser may have gone
}

// search finds homes by number or by a part of the address.
func (w *web) search(rw http.ResponseWriter, r *http.Request) {
	type found struct {
		Home    int    `json:"home"`
		Address string `json:"address"`
	}
	text := strings.ToLower(strings.TrimSpace(r.FormValue("q")))
	list := []found{}
	number, err := strconv.Atoi(text)
	if err == nil && number >= 0 && number < w.homes {
		list = append(list, found{number, addressOf(number)})
	}
	for home := range w.homes {
		if len(list) == 8 || text == "" {
			break
		}
		if address := addressOf(home); home != number && strings.Contains(strings.ToLower(address), text) {
			list = append(list, found{home, address})
		}
	}
	answer(rw, list, nil)
}

// documentEvery is how often an open page gets the stored document again. It has what
// happened before the page was opened; the instances write it with some delay. What the
// page has already it recognises by the sequence numbers.
const documentEvery = 5 * time.Second

// watchHome sends the document of a home, and its readings as they come.
func (w *web) watchHome(rw http.ResponseWriter, r *http.Request) {
	home, ok := w.homeOf(rw, r)
	if !ok {
		return
	}
	watch, end := w.live.watch(home) // before the document is read: nothing is between them
	defer end()
	s := startStream(rw)
	tick := time.NewTicker(documentEvery)
	defer tick.Stop()
	sent := version("none")
	document := func() error {
		a, v, err := w.store.load(r.Context(), home)
		switch {
		case err != nil:
			w.log.Warn("load a document", "home", home, "err", err)
			return s.ping() // the readings go on, and the next time it may work
		case v == sent:
			return s.ping() // notices that the browser has gone
		}
		sent = v
		return s.send("home", view(a))
	}
	for err := document(); err == nil; {
		select {
		case reading := <-watch.readings:
			err = s.send("reading", reading)
		case <-tick.C:
			err = document()
		case <-watch.lost:
			return // the browser connects again and gets the document
		case <-r.Context().Done():
			return
		}
	}
}

// watchOperations sends the state of the instances once a second.
func (w *web) watchOperations(rw http.ResponseWriter, r *http.Request) {
	s := startStream(rw)
	for {
		status, changed := w.ops.latest()
		status.Demo = w.demo != nil
		if s.send("status", status) != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// stream is a response of server-sent events.
type stream struct {
	rw      http.ResponseWriter
	control *http.ResponseController
}

func startStream(rw http.ResponseWriter) stream {
	h := rw.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	s := stream{rw, http.NewResponseController(rw)}
	_, _ = fmt.Fprint(rw, "retry: 1000\n\n") // the first event tells whether it worked
	return s
}

func (s stream) ping() error { return s.write(":\n\n") }

func (s stream) send(event string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, text))
}

// write sends text at once. A browser that takes none of it for long is given up.
func (s stream) write(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(s.rw, text); err != nil {
		return err
	}
	return s.control.Flush()
}
