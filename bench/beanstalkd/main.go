// SPDX-License-Identifier: Apache-2.0

// Command beanstalkd does to beanstalkd what `triagemq bench --urgent` does to
// TriageMQ, to compare them: it fills a backlog, lets workers with one job each
// drain it as fast as they can, and sends urgent jobs past it, one at a time.
//
//	go run ./bench/beanstalkd -address localhost:11300 -backlog 1000000
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
)

type settings struct {
	address string
	backlog int
	workers int
	urgent  int
	size    int
	pause   time.Duration
}

// Priorities: the lower number goes first.
const (
	most  = 0
	least = 1000
)

func main() {
	var s settings
	flag.StringVar(&s.address, "address", "localhost:11300", "`host:port` of beanstalkd")
	flag.IntVar(&s.backlog, "backlog", 1_000_000, "jobs that are waiting")
	flag.IntVar(&s.workers, "workers", 16, "connections that reserve and delete")
	flag.IntVar(&s.urgent, "urgent", 500, "urgent jobs")
	flag.IntVar(&s.size, "size", 256, "`bytes` of a body")
	flag.DurationVar(&s.pause, "pause", time.Millisecond, "between the receipt of an urgent job and the next")
	flag.Parse()
	if err := measure(s); err != nil {
		fmt.Fprintln(os.Stderr, "beanstalkd:", err)
		os.Exit(1)
	}
}

func measure(s settings) error {
	began := time.Now()
	if err := s.fill(); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	filled := time.Since(began)

	var out atomic.Int64
	came := make(chan time.Duration, 1) // one is under way at a time
	var wg sync.WaitGroup
	conns := make([]*conn, s.workers)
	for i := range conns {
		c, err := dial(s.address)
		if err != nil {
			return err
		}
		conns[i] = c
		wg.Go(func() { c.work(s.size, began, &out, came) }) // ends with its connection
	}
	from := time.Now()
	latency, err := s.probe(began, came)
	rate := float64(out.Load()) / time.Since(from).Seconds()
	left := s.backlog - int(out.Load())
	for _, c := range conns {
		c.nc.Close()
	}
	wg.Wait()
	if err != nil {
		return err
	}
	fmt.Printf("beanstalkd, %d urgent, %d workers with one job each, %d bytes, %d waiting\n", s.urgent, s.workers, s.size, s.backlog)
	fmt.Printf("  filled   %9.0f/s\n  out      %9.0f/s\n", float64(s.backlog)/filled.Seconds(), rate)
	fmt.Printf("  urgent   p50 %v  p90 %v  p99 %v  p99.9 %v  max %v  (%d)\n", latency.Quantile(0.5), latency.Quantile(0.9),
		latency.Quantile(0.99), latency.Quantile(0.999), latency.Quantile(1), latency.Count())
	fmt.Printf("  %d of the backlog are left\n", left)
	return nil
}

// conn is one connection.
type conn struct {
	nc net.Conn
	r  *bufio.Reader
}

func dial(address string) (*conn, error) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &conn{nc, bufio.NewReader(nc)}, nil
}

// appendPut appends a job that carries the time it was sent.
func appendPut(dst []byte, priority, size int, sent time.Duration) []byte {
	dst = fmt.Appendf(dst, "put %d 0 60 %d\r\n", priority, size)
	body := make([]byte, size)
	if priority == most {
		binary.BigEndian.PutUint64(body, uint64(sent))
	}
	return append(append(dst, body...), '\r', '\n')
}

// fill puts the backlog, many jobs in one write.
func (s settings) fill() error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.nc.Close()
	const many = 500
	var b []byte
	for n := 0; n < s.backlog; n += many {
		b = b[:0]
		count := min(many, s.backlog-n)
		for range count {
			b = appendPut(b, least, s.size, 0)
		}
		if _, err := c.nc.Write(b); err != nil {
			return err
		}
		for range count {
			if err := c.inserted(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *conn) inserted() error {
	line, err := c.r.ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "INSERTED") {
		err = fmt.Errorf("put: %s", strings.TrimSpace(line))
	}
	return err
}

// work reserves and deletes until the connection is closed. The next reserve is
// sent with the delete, as a fast worker does.
func (c *conn) work(size int, began time.Time, out *atomic.Int64, came chan<- time.Duration) {
	body := make([]byte, size+2)
	request := []byte("reserve\r\n")
	for first := true; ; first = false {
		if _, err := c.nc.Write(request); err != nil {
			return
		}
		if !first {
			if _, err := c.r.ReadString('\n'); err != nil { // DELETED
				return
			}
		}
		line, err := c.r.ReadString('\n')
		fields := strings.Fields(line)
		if err != nil || len(fields) != 3 {
			return
		}
		if _, err := io.ReadFull(c.r, body); err != nil {
			return
		}
		if sent := binary.BigEndian.Uint64(body); sent != 0 {
			came <- time.Since(began) - time.Duration(sent)
		}
		out.Add(1)
		id, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return
		}
		request = fmt.Appendf(request[:0], "delete %d\r\nreserve\r\n", id)
	}
}

// probe sends one urgent job after the other.
func (s settings) probe(began time.Time, came <-chan time.Duration) (*objective.Histogram, error) {
	c, err := dial(s.address)
	if err != nil {
		return nil, err
	}
	defer c.nc.Close()
	latency := new(objective.Histogram)
	for range s.urgent {
		if _, err := c.nc.Write(appendPut(nil, most, s.size, time.Since(began))); err != nil {
			return nil, err
		}
		if err := c.inserted(); err != nil {
			return nil, err
		}
		latency.Record(<-came)
		time.Sleep(s.pause)
	}
	return latency, nil
}
