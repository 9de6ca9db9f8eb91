// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"fmt"
	"time"
)

const (
	// paceBurst is how many bytes of records consumer groups may write at once: a fleet that
	// starts again, with all partitions of large groups.
	paceBurst = 64 << 20
	// paceRate is how many they may write in a second for long: some thousand checkpoints.
	paceRate = 256 << 10
	// paceStep is how often time gives something back.
	paceStep = 10 * time.Millisecond
)

// errPace refuses a command of a consumer group for which too much was written.
var errPace = fmt.Errorf("%w: the consumer groups of this event hub have written more than %d MiB and %d KiB a second; try again in a few seconds",
	ErrBusy, paceBurst>>20, paceRate>>10)

// pace bounds the records that the consumer groups of a hub write. They lie between its
// events, and stay on the disk as long as these do, although a snapshot has replaced them:
// else who may only read could fill the disk within minutes, by claims that are renewed or
// members that restart again and again. They may always write as much as the events take.
// The zero value has the whole burst.
type pace struct {
	spent int64     // bytes that were written beyond what time and events have given back
	at    time.Time // when that was last reduced
}

// admit refuses a command when more than so many bytes were written beyond what was given
// back. What frees something may use more than what adds something.
func (p *pace) admit(now time.Time, most int64) error {
	if passed := now.Sub(p.at); passed >= paceStep || passed < 0 {
		p.earn(int64(min(max(passed, 0), time.Hour).Seconds() * paceRate))
		p.at = now
	}
	if p.spent >= most {
		return errPace
	}
	return nil
}

// wrote counts bytes of records.
func (p *pace) wrote(n int) { p.spent += int64(max(n, 0)) } // it is less if a group was committed meanwhile

// earn gives back what time, or events, allow to write.
func (p *pace) earn(n int64) { p.spent = max(0, p.spent-n) }
