// SPDX-License-Identifier: Apache-2.0

//go:build linux

package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// chromium is a browser that is driven by the DevTools protocol, over a pipe: commands
// and events are JSON, each ended by a zero byte.
type chromium struct {
	cmd    *exec.Cmd
	to     io.Writer
	closed chan struct{} // closed when it sends no more

	mu      sync.Mutex
	last    int                   // number of the last command; guarded by mu
	answers map[int]chan devtools // by the command's number; guarded by mu
	tabs    map[string]*tab       // by session; guarded by mu
}

// devtools is a command, its answer, or an event.
type devtools struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// startChromium runs the browser of the distribution. A test is skipped where there is
// none, and fails with CI=true.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("Chromium is missing")
	} else if err != nil {
		t.Fatal(err)
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{theirs, ours} // 3 and 4, as the protocol has them
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirs.Close(), ours.Close() // the browser has them
	c := &chromium{cmd: cmd, to: to, closed: make(chan struct{}), answers: map[int]chan devtools{}, tabs: map[string]*tab{}}
	go c.read(from) // until the browser ends
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its helpers; it may have ended
		_ = cmd.Wait()
		<-c.closed
		_, _ = to.Close(), from.Close()
	})
	return c
}

// read delivers what the browser says.
func (c *chromium) read(from io.Reader) {
	defer close(c.closed)
	for r := bufio.NewReader(from); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m devtools
		params := json.RawMessage{}
		m.Params = &params
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) != nil {
			continue
		}
		c.mu.Lock()
		answer, tab := c.answers[m.ID], c.tabs[m.Session]
		delete(c.answers, m.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		} else if tab != nil {
			tab.event(m.Method, params)
		}
	}
}

// do runs a command and decodes its result.
func (c *chromium) do(session, method string, params, result any) error {
	answer := make(chan devtools, 1)
	c.mu.Lock()
	c.last++
	m := devtools{ID: c.last, Method: method, Params: params, Session: session}
	c.answers[m.ID] = answer
	text, err := json.Marshal(m)
	if err == nil {
		_, err = c.to.Write(append(text, 0))
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case a := <-answer:
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-c.closed:
		return errors.New("the browser has ended")
	case <-time.After(20 * time.Second):
		return fmt.Errorf("%s: the browser does not answer", method)
	}
}

// tab is a page that is open.
type tab struct {
	t       *testing.T
	browser *chromium
	session string

	mu       sync.Mutex
	problems []string // errors in the console; guarded by mu
}

// size is that of a window.
type size struct {
	width, height int
	phone         bool
}

var (
	phone   = size{320, 640, true}
	desktop = size{1280, 900, false}
)

// open opens a page. When the test ends there must be no error in its console.
func (c *chromium) open(t *testing.T, url string, s size) *tab {
	t.Helper()
	var target struct{ TargetID string }
	var session struct{ SessionID string }
	if err := c.do("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		t.Fatal(err)
	}
	if err := c.do("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		t.Fatal(err)
	}
	p := &tab{t: t, browser: c, session: session.SessionID}
	c.mu.Lock()
	c.tabs[p.session] = p
	c.mu.Unlock()
	t.Cleanup(func() {
		p.finish()
		_ = c.do("", "Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil) // the browser may have ended
	})
	p.do("Page.enable", nil, nil)
	p.do("Runtime.enable", nil, nil)
	p.do("Log.enable", nil, nil)
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": s.width, "height": s.height, "deviceScaleFactor": 1, "mobile": s.phone}, nil)
	p.do("Page.navigate", map[string]any{"url": url}, nil)
	p.wait("document.readyState === 'complete'")
	return p
}

// event keeps what the console shows as an error.
func (p *tab) event(method string, params json.RawMessage) {
	bad := method == "Runtime.exceptionThrown" ||
		method == "Runtime.consoleAPICalled" && !bytes.Contains(params, []byte(`"type":"log"`)) ||
		method == "Log.entryAdded" && bytes.Contains(params, []byte(`"level":"error"`))
	if bad {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, string(params))
	}
}

// expectErrors forgets the errors so far: the test has caused them.
func (p *tab) expectErrors() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = nil
}

// finish reports errors, and takes a picture if the test failed.
func (p *tab) finish() {
	p.mu.Lock()
	for _, text := range p.problems {
		p.t.Errorf("in the console: %s", text)
	}
	p.mu.Unlock()
	dir := os.Getenv("BROWSER_PICTURES") // for those who want to see the pages
	if p.t.Failed() && dir == "" {
		dir = os.TempDir()
	}
	if dir == "" {
		return
	}
	file := filepath.Join(dir, "triagemq-"+strings.ReplaceAll(p.t.Name(), "/", "-")+".png")
	if err := p.picture(file); err != nil {
		p.t.Log(err)
		return
	}
	p.t.Logf("a picture of the page is in %s", file)
}

func (p *tab) picture(file string) error {
	var picture struct{ Data string }
	if err := p.browser.do(p.session, "Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &picture); err != nil {
		return err
	}
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

func (p *tab) do(method string, params, result any) {
	p.t.Helper()
	if err := p.browser.do(p.session, method, params, result); err != nil {
		p.t.Fatal(err)
	}
}

// eval runs a script in the page and decodes its value.
func (p *tab) eval(script string, value any) {
	p.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	p.do("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		p.t.Fatalf("%s\n%s", script, answer.ExceptionDetails)
	}
	if value == nil {
		return
	}
	if err := json.Unmarshal(answer.Result.Value, value); err != nil {
		p.t.Fatalf("%s is %s: %v", script, answer.Result.Value, err)
	}
}

// patience is how long a page may take to show something: this machine may be busy.
const patience = 20 * time.Second

// wait waits until a condition is true in the page.
func (p *tab) wait(condition string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		var is bool
		p.eval("Boolean("+condition+")", &is)
		if is {
			return
		}
		if time.Now().After(end) {
			var text string
			p.eval("document.body?.innerText ?? ''", &text)
			p.t.Fatalf("the page does not get there: %s\n%s", condition, text)
		}
	}
}

// text types into what has the focus.
func (p *tab) text(s string) {
	p.t.Helper()
	p.do("Input.insertText", map[string]any{"text": s}, nil)
}

// press presses Enter or Tab.
func (p *tab) press(key string) {
	p.t.Helper()
	codes := map[string]int{"Enter": 13, "Tab": 9}
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	if key == "Enter" {
		down["text"] = "\r"
	}
	p.do("Input.dispatchKeyEvent", down, nil)
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}, nil)
}
