// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"io"
	"log/slog"
)

// maxLine is the longest line of output that is logged as one.
const maxLine = 4 << 10

// outputWriter takes what a program prints.
type outputWriter interface {
	io.Writer
	flush() // at the end
}

// lines logs what is written to it, line by line. One goroutine writes to it.
type lines struct {
	log    *slog.Logger
	stream string
	left   int // bytes that may still be logged
	beyond int // bytes that were left out
	last   string
	line   []byte // the begin of a line
}

// Write logs the lines that data ends. It never fails: a program must not notice that
// its output is too long to keep.
func (l *lines) Write(data []byte) (int, error) {
	n := len(data)
	if len(data) > l.left {
		l.beyond += len(data) - l.left
		data = data[:l.left]
	}
	l.left -= len(data)
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		part := data
		if end >= 0 {
			part = data[:end]
		}
		part = part[:min(len(part), maxLine-len(l.line))]
		l.line = append(l.line, part...)
		data = data[len(part):]
		switch {
		case len(data) > 0 && data[0] == '\n':
			data = data[1:]
			l.emit()
		case len(l.line) == maxLine:
			l.emit()
		}
	}
	return n, nil
}

// emit logs the line so far.
func (l *lines) emit() {
	line := string(bytes.TrimSuffix(l.line, []byte{'\r'}))
	l.line = l.line[:0]
	if line == "" {
		return
	}
	l.last = line
	l.log.Info("output", "stream", l.stream, "line", line)
}

func (l *lines) flush() {
	l.emit()
	if l.beyond > 0 {
		l.log.Warn("output left out of the log", "stream", l.stream, "bytes", l.beyond)
	}
}

// collector keeps what is written to it, up to a limit.
type collector struct {
	limit  int
	data   []byte
	beyond int
}

func (c *collector) Write(data []byte) (int, error) {
	keep := min(len(data), c.limit-len(c.data))
	c.data = append(c.data, data[:keep]...)
	c.beyond += len(data) - keep
	return len(data), nil
}

func (c *collector) flush() {}
