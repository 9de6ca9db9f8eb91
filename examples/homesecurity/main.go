// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/triagemq/triagemq/client"
)

const usage = `homesecurity [COMMAND] [FLAGS]

  demo               a broker, the sensors, instances and the pages; the default
  instance           one more instance
  add-sensor TYPE    one more sensor in each home: more events
  generate           the sensors only
  web                the pages only

Without --broker, the others work for the demo that runs on this machine.
`

// defaultListen is where the pages are, if the port is free.
const defaultListen = "127.0.0.1:8200"

// settings are the flags of all commands. A demo tells those with names in JSON to the
// commands that work for it.
type settings struct {
	at      string
	Broker  string  `json:"broker"`
	Blobs   string  `json:"blobs"`
	Homes   int     `json:"homes"`
	Speed   float64 `json:"speed"`
	sensors string
	listen  string
	name    string
	count   int
	child   bool
}

func (s *settings) flags(command string) *flag.FlagSet {
	f := flag.NewFlagSet("homesecurity "+command, flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), usage, "\n")
		f.PrintDefaults()
	}
	f.StringVar(&s.at, "at", "http://"+defaultListen, "page of the demo that runs")
	f.StringVar(&s.Broker, "broker", os.Getenv("TRIAGEMQ_CONNECTION_STRING"), "connection string of the broker")
	f.StringVar(&s.Blobs, "blobs", "", "where the documents are: a directory, or the connection string of an Azure storage account")
	f.IntVar(&s.Homes, "homes", 100_000, "how many homes there are")
	f.Float64Var(&s.Speed, "speed", 1, "how often a sensor reports each minute")
	f.StringVar(&s.sensors, "sensors", defaultSensors, "sensors that each home has")
	f.StringVar(&s.listen, "listen", defaultListen, "address of the pages; the demo takes another port if it is in use")
	f.StringVar(&s.name, "name", fmt.Sprintf("instance-%d", os.Getpid()), "name of the instance")
	f.IntVar(&s.count, "instances", 3, "how many instances the demo starts")
	f.BoolVar(&s.child, "child", false, "end when standard input ends: the demo starts its processes with it")
	return f
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "homesecurity:", err)
		os.Exit(1)
	}
}

// run runs a command.
func run(ctx context.Context, args []string, out io.Writer) error {
	command, added := "demo", ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	if command == "add-sensor" {
		if len(args) == 0 || strings.HasPrefix(args[0], "-") {
			return errors.New("which sensor? For instance: add-sensor water")
		}
		added, args = args[0], args[1:]
	}
	var s settings
	flags := s.flags(command)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is one too many; -h shows how it is used", flags.Arg(0))
	}
	if command == "demo" {
		return runDemo(ctx, s, out)
	}
	if s.Broker == "" {
		if err := s.ask(ctx); err != nil {
			return err
		}
		if err := flags.Parse(args); err != nil { // flags win
			return err
		}
	}
	if added != "" {
		s.sensors = added
	}
	if err := s.check(); err != nil {
		return err
	}
	if s.child {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		signal.Ignore(os.Interrupt) // Ctrl-C is for the demo, which then ends us
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // however the demo ends, its end of the pipe is closed
			end()
		}()
	}
	c, err := client.Dial(ctx, s.Broker, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	switch command {
	case "instance":
		return s.runInstance(ctx, c, out)
	case "generate", "add-sensor":
		g := &generator{client: c, homes: s.Homes, sensors: strings.Split(s.sensors, ","), speed: s.Speed}
		return g.run(ctx, out)
	case "web":
		return s.runWeb(ctx, c, nil, out)
	}
	return fmt.Errorf("there is no command %q\n\n%s", command, usage)
}

// ask takes the settings of the demo that runs.
func (s *settings) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at+"/api/demo", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("no demo runs at %s; give its address with --at, or a broker with --broker: %w", s.at, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not the demo: %s", s.at, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(s)
}

func (s *settings) check() error {
	var errs []error
	if s.Homes < 1 {
		errs = append(errs, fmt.Errorf("--homes: %d is too few", s.Homes))
	}
	if s.Speed <= 0 {
		errs = append(errs, fmt.Errorf("--speed: %v is not above 0", s.Speed))
	}
	for name := range strings.SplitSeq(s.sensors, ",") {
		if err := checkSensor(name); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkSensor tells whether a sensor can have a name.
func checkSensor(name string) error {
	if name == "" || len(name) > 20 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("a sensor %q: its name has 1 to 20 small letters and digits", name)
	}
	return nil
}

func (s *settings) openStore(ctx context.Context) (store, error) {
	if s.Blobs == "" {
		return nil, errors.New("--blobs: where are the documents?")
	}
	return openStore(ctx, s.Blobs)
}

func (s *settings) runInstance(ctx context.Context, c *client.Client, out io.Writer) error {
	store, err := s.openStore(ctx)
	if err != nil {
		return err
	}
	in := &instance{name: s.name, store: store}
	return in.run(ctx, c, out)
}

// runWeb serves the pages, for a demo if there is one.
func (s *settings) runWeb(ctx context.Context, c *client.Client, d *demo, out io.Writer) error {
	store, err := s.openStore(ctx)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil && d != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return err
	}
	group, err := askGroup(s.Broker)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	w := newWeb(c, store, newOperations(group), s.Homes, log)
	if w.demo = d; d != nil {
		d.welcome("http://" + listener.Addr().String())
	} else {
		fmt.Fprintf(out, "The pages are at http://%s/ and http://%[1]s/operations\n", listener.Addr())
	}
	return w.serve(ctx, listener)
}
