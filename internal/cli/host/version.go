// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/internal/cli"
)

// VersionCommand is the same as --version, for those who try it first.
func VersionCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.Out, "triagemq", Version())
			return err
		},
	}
}

// Version describes the program: what it was built from, and with what.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown origin, " + runtime.Version()
	}
	return versionOf(info)
}

// versionOf writes build information on one line: the version of the module, which has the
// commit in it for a program that go built from a repository, the platform and the
// version of Go.
func versionOf(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	text := info.Main.Version
	if text == "" || text == "(devel)" {
		text = "(development)"
		if commit := settings["vcs.revision"]; commit != "" {
			text += " " + commit[:min(len(commit), 12)]
		}
		if at, err := time.Parse(time.RFC3339, settings["vcs.time"]); err == nil {
			text += " of " + at.UTC().Format(time.DateOnly)
		}
		if settings["vcs.modified"] == "true" {
			text += ", changed since"
		}
	}
	return fmt.Sprintf("%s, %s/%s, %s", text, settings["GOOS"], settings["GOARCH"], info.GoVersion)
}
