// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/entity"
)

// messageBox is one of the queues at a name: the messages of an entity, or its dead letters.
type messageBox struct {
	name  string // for people
	path  string // of the API
	dead  bool
	query url.Values // what every request says
}

// boxOf returns the place that the user means by a name and the flags. The paths of a
// queue's messages take the name of a topic as well: only the broker knows which it
// is.
func boxOf(s cli.Source, name string) (messageBox, error) {
	p, err := entity.ParsePath(s.Of(name))
	if err != nil {
		return messageBox{}, cli.Usage(err)
	}
	b := messageBox{name: p.String(), path: cli.Path("queues", p.Entity), dead: p.SubQueue != entity.MainQueue, query: url.Values{}}
	if p.Subscription != "" {
		b.path = cli.Path("topics", p.Entity, "subscriptions", p.Subscription)
	}
	if b.dead {
		b.path += "/deadletters"
	} else {
		b.path += "/messages"
	}
	if p.SubQueue == entity.TransferDeadLetter {
		b.query.Set("transfer", "true")
	}
	return b, nil
}

// at returns the path and query of a request about the box.
func (b messageBox) at(below string, query url.Values) string {
	all := url.Values{}
	for _, q := range []url.Values{b.query, query} {
		maps.Copy(all, q)
	}
	if len(all) == 0 {
		return b.path + below
	}
	return b.path + below + "?" + all.Encode()
}

// browseFlags choose messages to look at.
type browseFlags struct {
	from    int64
	count   int
	filter  string
	session string
	full    bool
}

// choose are the flags of every command that picks messages.
func (f *browseFlags) choose(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.Int64Var(&f.from, "from", 0, "the lowest sequence `number` to look at")
	fs.StringVar(&f.filter, "filter", "", "only those for which this `condition` is true, in the language of rules")
}

// flags are those of the commands that show messages.
func (f *browseFlags) flags(cmd *cobra.Command) {
	f.choose(cmd)
	fs := cmd.Flags()
	fs.IntVarP(&f.count, "count", "n", 20, "how many to show; 0 is all")
	fs.StringVar(&f.session, "session", "", "only those of the session of this `id`")
	fs.BoolVar(&f.full, "full", false, "show properties and whole bodies")
}

// browseWindow is how many messages are asked for in one request.
const browseWindow = 500

// browse yields the messages that the flags choose, whole if that was asked for.
func (f *browseFlags) browse(ctx context.Context, a *cli.API, in messageBox) iter.Seq2[ShownMessage, error] {
	return func(yield func(ShownMessage, error) bool) {
		if f.count < 0 || f.from < 0 {
			yield(ShownMessage{}, cli.Usage(fmt.Errorf("--count and --from are not negative")))
			return
		}
		query := url.Values{}
		if f.filter != "" {
			query.Set("filter", f.filter)
		}
		if f.session != "" {
			query.Set("session", f.session)
		}
		next := client.SeqNo(f.from)
		for shown := 0; f.count == 0 || shown < f.count; {
			limit := browseWindow
			if f.count > 0 {
				limit = min(browseWindow, f.count-shown)
			}
			query.Set("from", strconv.FormatInt(int64(next), 10))
			query.Set("max", strconv.Itoa(limit))
			var page struct {
				Messages []ShownMessage `json:"messages"`
				Next     client.SeqNo   `json:"next"`
			}
			if err := a.Do(ctx, http.MethodGet, in.at("", query), nil, &page); err != nil {
				yield(ShownMessage{}, err)
				return
			}
			for _, m := range page.Messages {
				m, err := f.whole(ctx, a, in, m)
				if !yield(m, err) || err != nil {
					return
				}
				shown++
			}
			if page.Next <= next {
				return
			}
			next = page.Next
		}
	}
}

// whole gets the rest of a body that the list cut short, if it is wanted.
func (f *browseFlags) whole(ctx context.Context, a *cli.API, in messageBox, m ShownMessage) (ShownMessage, error) {
	if !f.full || !m.Truncated {
		return m, nil
	}
	var all ShownMessage
	err := a.Do(ctx, http.MethodGet, in.at(fmt.Sprintf("/%d", m.SequenceNumber), nil), nil, &all)
	return all, err
}
