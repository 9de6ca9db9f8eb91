// SPDX-License-Identifier: Apache-2.0

// Package browser opens the pages of examples/homesecurity in Chromium, from the real
// program with a real broker. It has tests only.
//
// TRIAGEMQ_BINARY names the broker; without it the example builds one. With
// BROWSER_PICTURES the pages are saved in that directory as the tests left them; else
// only those of tests that failed, in that for temporary files.
package browser
