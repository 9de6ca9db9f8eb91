// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"runtime/debug"
	"time"
)

// guard calls code of the pool's user. A panic there must not end the other tasks, nor
// count as one of the handler: it is logged and returned.
func (r *run) guard(what string, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			r.settings.log.Error(what+" panicked", "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("worker: %s panicked: %v", what, v)
		}
	}()
	return call()
}

// observe tells the observer, if there is one.
func (r *run) observe(tell func(Observer)) {
	if o := r.pool.Observer; o != nil {
		_ = r.guard("observer", func() error { tell(o); return nil }) // guard has logged it
	}
}

// backoff returns the wait after a number of failures; that of the default, if the
// pool's own rule panics.
func (r *run) backoff(failures int) time.Duration {
	wait := defaultRetry(failures)
	_ = r.guard("Retry", func() error { wait = r.settings.retry(failures); return nil }) // guard has logged it
	return wait
}
