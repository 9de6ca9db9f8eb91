// SPDX-License-Identifier: Apache-2.0

package streamserver

import "slices"

// maxReaders is how many readers without an epoch a group has at one partition, as in the
// service.
const maxReaders = 5

// readerGroup is the readers of one consumer group at one partition: one with an epoch, or some
// without.
type readerGroup struct {
	holder  *Reader   // with an epoch
	readers []*Reader // without
}

// admit returns why a reader is refused, if it is.
//
//	new        there              result
//	epoch e    none, or without   accepted; those without end
//	epoch e    epoch <= e         accepted; the old one ends
//	epoch e    epoch > e          refused
//	without    epoch              refused
//	without    5 without          refused
func (g *readerGroup) admit(r *Reader) error {
	switch {
	case g.holder != nil && (r.opts.Epoch == nil || *r.opts.Epoch < *g.holder.opts.Epoch):
		return &EpochError{By: g.holder.opts.Name, ByEpoch: *g.holder.opts.Epoch, Name: r.opts.Name, Epoch: r.opts.Epoch}
	case r.opts.Epoch == nil && len(g.readers) >= maxReaders:
		var names []string
		for _, x := range g.readers {
			names = append(names, x.opts.Name)
		}
		return &ReadersError{Limit: maxReaders, Connected: names}
	}
	return nil
}

// all returns the readers.
func (g *readerGroup) all() []*Reader {
	if g.holder != nil {
		return []*Reader{g.holder}
	}
	return g.readers
}

// join adds a reader that was admitted, and ends those that it excludes.
func (p *partition) join(r *Reader) {
	g := p.groups[r.opts.Group]
	if g == nil {
		g = &readerGroup{}
		p.groups[r.opts.Group] = g
	}
	if r.opts.Epoch == nil {
		g.readers = append(g.readers, r)
		return
	}
	for _, old := range slices.Clone(g.all()) {
		p.remove(old)
		old.end(&EpochError{By: r.opts.Name, ByEpoch: *r.opts.Epoch, Name: old.opts.Name, Epoch: old.opts.Epoch, Ended: true})
	}
	p.groups[r.opts.Group] = &readerGroup{holder: r}
}

// remove forgets a reader, and its group if that has no other.
func (p *partition) remove(r *Reader) {
	g := p.groups[r.opts.Group]
	if g == nil {
		return
	}
	if g.holder == r {
		g.holder = nil
	}
	g.readers = slices.DeleteFunc(g.readers, func(x *Reader) bool { return x == r })
	if len(g.all()) == 0 {
		delete(p.groups, r.opts.Group)
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(x *Reader) bool { return x == r })
}

// dismiss ends all readers.
func (p *partition) dismiss(err error) {
	for _, r := range p.readers() {
		p.remove(r)
		r.end(err)
	}
}

// readers returns all of them, by their groups.
func (p *partition) readers() (all []*Reader) {
	for _, name := range sortedKeys(p.groups) {
		all = append(all, p.groups[name].all()...)
	}
	return all
}
