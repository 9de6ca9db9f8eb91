// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/server"
)

// serveFlags are what serve can be told on its command line.
type serveFlags struct {
	config.Config        // what flags set
	file          string // YAML
	emulator      string // Config.json of the vendor's emulators
	verbose       bool
	profile       string
}

func ServeCommand(s cli.Streams) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a broker",
		Long: `Run a broker until it is interrupted.

AMQP, HTTP and WebSocket are served on every address, with and without TLS.
The entities of the file are created, and those that exist are brought in line with it;
SIGHUP reads it again and does the same. What it does not name is left alone.
SIGHUP also reads keys and certificates again, with and without a file.
Settings come from the file, the environment (TRIAGEMQ_DATA, TRIAGEMQ_LISTEN, …)
and flags; later ones win.

--dev accepts every program on this machine without a key of its own, so it listens on
this machine alone. A container cannot tell who is on its machine: give --dev
--allow-remote there, and clients the key that the first start prints.`,
		Example: `  triagemq serve --dev
  triagemq serve --dev --allow-remote --listen 0.0.0.0:5672 --listen 0.0.0.0:5300
  triagemq serve --data /var/lib/triagemq --listen 0.0.0.0:5671 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.settings(os.LookupEnv)
			err = checkedProcess(cfg, err)
			if err != nil {
				return cli.Usage(err)
			}
			level := slog.LevelInfo
			if f.verbose {
				level = slog.LevelDebug
			}
			stop, err := startProfile(f.profile)
			if err != nil {
				return err
			}
			err = serve(cmd.Context(), cfg, f.onHangup(cmd.Context(), s), level, s)
			return errors.Join(err, stop())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Data, "data", "", "`directory` of the store (default ./triagemq-data)")
	fs.StringSliceVar(&f.Listeners, "listen", nil, "`host:port` to listen on; may be repeated (default localhost:5672 and localhost:5300)")
	fs.BoolVar(&f.Security.Dev, "dev", false, "development mode: accept the emulators' key from loopback, generate a certificate, create the queues orders and demo")
	fs.BoolVar(&f.Security.AllowRemote, "allow-remote", false, "with --dev: also serve other machines, in plain text; every client needs a key")
	fs.StringVar(&f.file, "config", "", "YAML `file` with settings and entities")
	fs.StringVar(&f.emulator, "emulator-config", "", "Config.json `file` of the Service Bus or Event Hubs emulator")
	fs.StringVar(&f.TLS.CertFile, "tls-cert", "", "certificate `file`, PEM")
	fs.StringVar(&f.TLS.KeyFile, "tls-key", "", "key `file`, PEM")
	fs.StringVar(&f.TLS.ClientCAFile, "tls-client-ca", "", "CA `file` whose client certificates are accepted")
	fs.BoolVar(&f.Security.Insecure, "insecure", false, "serve plain text to other machines too")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log each connection")
	fs.StringVar(&f.profile, "cpu-profile", "", "write a processor profile of the whole run to a `file`")
	return cmd
}

// settings merges defaults, files, environment and flags.
func (f serveFlags) settings(lookup func(string) (string, bool)) (config.Config, error) {
	cfg := config.Default()
	if f.file != "" {
		file, err := cli.LoadConfig(f.file)
		if err != nil {
			return cfg, err
		}
		cfg = cfg.Merge(file)
	}
	if f.emulator != "" {
		file, err := config.LoadEmulator(f.emulator)
		if err = cli.Checked(file, err); err != nil {
			return cfg, err
		}
		cfg = cfg.Merge(file)
	}
	env, err := config.Environment(lookup)
	if err != nil {
		return cfg, err
	}
	cfg = cfg.Merge(env).Merge(f.Config)
	if cfg.Security.Dev && f.file == "" && f.emulator == "" {
		cfg.Queues = []entity.Queue{{Name: "orders"}, {Name: "demo"}}
	}
	return cfg, cfg.Validate()
}

func serve(ctx context.Context, cfg config.Config, again reloads, level slog.Level, s cli.Streams) error {
	log := slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: level}))
	defer ballast()()
	gone := func() {}
	defer func() { gone() }()
	err := server.Run(ctx, server.Config{
		Config:  cfg,
		Changes: again.changes,
		Reload:  again.again,
		Ready: func(r server.Ready) {
			end, err := announce(cfg.Data, reachOf(cfg, r))
			if err != nil {
				log.Warn("`triagemq key rotate` will not find this broker: send it SIGHUP then", "err", err)
			} else {
				gone = end
			}
			printReady(s.Out, cfg, r)
			if cfg.Security.Dev && cfg.Security.AllowRemote {
				warnRemote(s.Err, os.Getenv("NO_COLOR") == "")
			}
		},
	}, log)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.Is(err, server.ErrUnfinished):
		return nil
	case errors.Is(err, journal.ErrCorrupt):
		return fmt.Errorf("%w\n`triagemq journal verify --data %s` lists the damage; `journal repair` restores or drops it", err, cfg.Data)
	}
	return err
}

// printReady says where the broker listens and how to connect.
func printReady(w io.Writer, cfg config.Config, r server.Ready) {
	fmt.Fprintf(w, "TriageMQ is ready. Data in %s\n", cfg.Data)
	for _, addr := range r.Addresses {
		fmt.Fprintf(w, "  listening on %s\n", addr)
	}
	at := reachOf(cfg, r)
	if cfg.Security.Dev && !cfg.Security.AllowRemote {
		fmt.Fprintf(w, "\nDevelopment: from this machine, connect with\n  "+
			"Endpoint=sb://%s;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true\n", at.endpoint)
	}
	if r.CA != "" {
		fmt.Fprintf(w, "For TLS, trust %s (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS).\n", filepath.Join(cfg.Data, filepath.FromSlash(r.CA)))
	}
	show := "triagemq key show --data " + cfg.Data
	switch {
	case r.NewKey != nil:
		fmt.Fprintf(w, "\nCreated a root key, stored in %s; `%s` prints it again\n  %s\n",
			filepath.Join(cfg.Data, "namespace.json"), show,
			connectionString(at, r.NewKey.Name, r.NewKey.PrimaryKey))
	case !cfg.Security.Dev || cfg.Security.AllowRemote:
		fmt.Fprintf(w, "Keys were made before; `%s` shows them.\n", show)
	}
}

// reachOf returns how a broker that is up is reached.
func reachOf(cfg config.Config, r server.Ready) reach {
	encrypted := r.TLS && !cfg.Security.Dev
	return reach{endpointOf(r.Addresses, encrypted), encrypted}
}

// connectionString is what SDKs connect with. Those that are to do without TLS are told
// that it is an emulator.
func connectionString(at reach, rule, key string) string {
	text := "Endpoint=sb://" + at.endpoint + ";SharedAccessKeyName=" + rule + ";SharedAccessKey=" + key
	if !at.encrypted {
		text += ";UseDevelopmentEmulator=true"
	}
	return text
}

// warnRemote says what --allow-remote means. It is red, because a broker for
// development is easily forgotten where it should not be.
func warnRemote(w io.Writer, colored bool) {
	red, plain := "\x1b[31m", "\x1b[0m"
	if !colored {
		red, plain = "", ""
	}
	fmt.Fprintf(w, "%sWARNING: this broker is for development and serves other machines. Keys and messages pass in plain text: "+
		"everybody on the network path can read them. The emulators' key does not work; clients need the key in namespace.json, "+
		"which the first start prints and `triagemq key show` shows.%s\n", red, plain)
}

// endpointOf returns the host to put into a connection string, with a port unless it is
// the one that clients assume. The host is one that is listened on: localhost means both
// 127.0.0.1 and ::1, and clients differ in which they try.
func endpointOf(addresses []string, encrypted bool) string {
	assumed := "5672"
	if encrypted {
		assumed = "5671"
	}
	hosts := map[string][]string{} // by port
	first := ""
	for _, addr := range addresses {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			continue
		}
		if first == "" || port == assumed {
			first = port
		}
		hosts[port] = append(hosts[port], host)
	}
	host := hostOf(hosts[first])
	if first == assumed || first == "" {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, first)
}

// hostOf returns the name of this machine for a client on it, of the hosts that are
// listened on.
func hostOf(hosts []string) string {
	loopbacks := 0
	for _, h := range hosts {
		switch ip := net.ParseIP(h); {
		case ip == nil && h != "":
			return h
		case h == "", ip.IsUnspecified():
			return "localhost"
		case ip.IsLoopback():
			loopbacks++
		}
	}
	if loopbacks > 1 || len(hosts) == 0 {
		return "localhost"
	}
	return hosts[0]
}
