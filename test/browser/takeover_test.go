// SPDX-License-Identifier: Apache-2.0

//go:build linux

package browser

import (
	"fmt"
	"testing"
)

// A second command adds an instance, which is killed.
func TestTakeOver(t *testing.T) {
	browser := startChromium(t)
	d := startDemo(t)
	p := browser.open(t, d.page+"/operations", desktop)
	owners := func(name string) string {
		return fmt.Sprintf("[...document.querySelectorAll('#rows .owner')].filter((e) => e.textContent === '%s').length", name)
	}
	p.wait(owners("instance-1") + " === 8 && " + owners("instance-2") + " === 8")

	added := start(t, d.program, "instance", "--at", d.page, "--name", "instance-third")
	p.wait("document.querySelector('[data-instance=instance-third]')")
	p.wait(owners("instance-third") + " === 5")
	var its []string // partitions
	p.eval("[...document.querySelectorAll('#rows tr')].filter((e) => e.children[1].textContent === 'instance-third').map((e) => e.children[0].textContent)", &its)

	added.kill()
	p.wait(owners("instance-third") + " === 0 && " + owners("nobody") + " === 0")
	p.wait("!document.querySelector('[data-instance=instance-third]')")
	p.wait(owners("instance-1") + " === 8 && " + owners("instance-2") + " === 8")
	for _, partition := range its {
		var history string
		p.eval(fmt.Sprintf("document.querySelector('.strip[data-partition=\"%s\"]').dataset.owners", partition), &history)
		t.Logf("partition %s belonged to %s", partition, history)
		p.wait(fmt.Sprintf(`/ instance-third .*instance-[12]$/.test(document.querySelector('.strip[data-partition="%s"]').dataset.owners)`, partition))
	}

	// The page itself can do the same.
	p.eval("document.getElementById('add').click()", nil)
	p.wait(owners("instance-3") + " === 5")
	p.eval("document.querySelector('[data-instance=instance-3] button').click()", nil)
	p.wait(owners("instance-3") + " === 0 && " + owners("nobody") + " === 0")

	// A new sensor in each home.
	p.eval("document.getElementById('type').value = 'water'; document.querySelector('#sensor button').click()", nil)
	home := browser.open(t, d.page+"/?home=3", phone)
	home.wait("document.querySelector('[data-sensor=water]')")

	for _, scheme := range []string{"light", "dark"} {
		for name, s := range map[string]size{"phone": phone, "desktop": desktop} {
			t.Run("operations on a "+name+", "+scheme, func(t *testing.T) {
				look(t, browser, d.page+"/operations", "document.querySelectorAll('#rows tr').length === 16", scheme, s)
			})
		}
	}
}
