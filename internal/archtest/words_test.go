// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// oldWords are words of earlier names that must not return as a part of an
// identifier. The comment is the word that is used now. A word is added when its
// last use is renamed.
var oldWords = []string{
	"bury",       // deadLetter
	"eldest",     // oldest
	"farewell",   // closeAndFlush
	"forgetful",  // ReceiveAndDelete
	"lent",       // outstanding, Inherited
	"loan",       // Inherited
	"overstayed", // ErrStopTimeout
	"parcel",     // encodedMessage
	"quicken",    // requestShortSlice
	"room",       // space, memory
	"shelf",      // slab
	"shelves",    // slabs
	"stencil",    // messageTemplate
	"stranger",   // unauthenticated peer
	"strangers",  // unauthenticated peers
	"unstand",    // unmarkReady
	"verdict",    // Disposition, Classification
}

// oldNames are earlier identifiers that must not return, in this spelling. The
// comment is the name that is used now.
var oldNames = []string{
	"ClaimsLoan",     // HasInherited
	"Unlent",         // StripInherited
	"StateUntold",    // StateUnset
	"OwnLevel",       // LevelFromMessage
	"secondLook",     // checkCombinations
	"sendForGood",    // sendSettled
	"settleUp",       // runDeferred
	"breakOff",       // detachWithError
	"letGo",          // unpin
	"thinOut",        // reclaim
	"queueUp",        // addToSession
	"dropOut",        // removeFromSession
	"takeOff",        // incInFlight
	"endLives",       // expireMessages
	"sessionHold",    // lockedSession
	"keepStocked",    // preallocate
	"StrangerLimit",  // UnauthenticatedLimit
	"StrangersLimit", // AllUnauthenticatedLimit
	"NewKeeper",      // NewRuleAuthority
	"probePatience",  // probeTimeout
	"coreRooms",      // corePkgs
	"RateStanding",   // RateStatus
}

// oldPhrases are figures of speech that must not return in comments, texts and
// documents. The comment says what to write instead.
var oldPhrases = []string{
	"turned away",       // rejected, throttled
	"turns away",        // rejects
	"turn away",         // reject
	"for good",          // permanently; of a delivery: pre-settled
	"stands for",        // represents, means
	"stand on",          // depend on
	"stands on",         // depends on
	"make room",         // free space, evict
	"makes up its mind", // decides
	"whoever",           // name the caller, receiver or goroutine
	"goes as",           // is ranked as
	"as it may",         // up to its limit
	"for ever",          // without limit
	"let in",            // admitted, accepted
	"lets in",           // admits, accepts
	"unless told",       // by default
	"hand out",          // deliver
	"hands out",         // delivers
	"handed out",        // delivered
	"in good order",     // cleanly
	"made room",         // were evicted
	"makes room",        // frees space, evicts
	"asked back",        // recalled
	"less than nothing", // must not be negative
}

// words splits an identifier at changes of case: sendForGood is send, for, good.
func words(identifier string) []string {
	var out []string
	var word []rune
	rs := []rune(identifier)
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	for i, r := range rs {
		switch {
		case !unicode.IsLetter(r):
			flush()
			continue
		case unicode.IsUpper(r) && (i == 0 || !unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1])):
			flush()
		}
		word = append(word, r)
	}
	flush()
	return out
}

// nameFaults reports the identifiers of a file that have an old name.
func nameFaults(s source) []string {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, s.path, s.text, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	for node := range ast.Preorder(file) {
		id, ok := node.(*ast.Ident)
		if !ok {
			continue
		}
		old := slices.Contains(oldNames, id.Name)
		for _, w := range words(id.Name) {
			old = old || slices.Contains(oldWords, w)
		}
		if old {
			faults = append(faults, fmt.Sprintf("%s: the name %s is an old word; see oldWords and oldNames", set.Position(id.Pos()), id.Name))
		}
	}
	return faults
}

// phrases matches an old phrase in a text whose lines are joined.
var phrases = regexp.MustCompile(`(?i)\b(` + strings.Join(oldPhrases, "|") + `)\b`)

// space matches what separates two words of a text, over lines and comment marks.
var space = regexp.MustCompile(`\s*\n\s*(//)?\s*`)

func phraseIn(text string) string {
	return phrases.FindString(space.ReplaceAllString(text, " "))
}

// textFaults reports the comments and strings of a file that have an old phrase.
func textFaults(s source) []string {
	set := token.NewFileSet()
	file := set.AddFile(s.path, -1, len(s.text))
	var scan scanner.Scanner
	scan.Init(file, []byte(s.text), nil, scanner.ScanComments)
	var faults []string
	var comment strings.Builder // the lines of one comment
	var from token.Pos
	check := func(at token.Pos, text string) {
		if found := phraseIn(text); found != "" {
			faults = append(faults, fmt.Sprintf("%s: %q is an old phrase; see oldPhrases", set.Position(at), found))
		}
	}
	end := func() {
		check(from, comment.String())
		comment.Reset()
	}
	for {
		pos, tok, lit := scan.Scan()
		switch tok {
		case token.COMMENT:
			if comment.Len() == 0 {
				from = pos
			}
			comment.WriteString(strings.TrimPrefix(lit, "//") + "\n")
			continue
		case token.STRING:
			check(pos, lit)
		}
		end()
		if tok == token.EOF {
			return faults
		}
	}
}

// documents returns every Markdown file of the repository.
func documents(t *testing.T) []source {
	t.Helper()
	var files []source
	top := root(t)
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && (n == "testdata" || n == "node_modules" || strings.HasPrefix(n, ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, name)
		files = append(files, source{filepath.ToSlash(rel), string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

const wordList = "internal/archtest/words_test.go"

func TestOldNames(t *testing.T) {
	for _, s := range sources(t) {
		report(t, nameFaults(s))
	}
}

func TestOldPhrases(t *testing.T) {
	for _, s := range sources(t) {
		if s.path != wordList {
			report(t, textFaults(s))
		}
	}
	for _, d := range documents(t) {
		for i, paragraph := range strings.Split(d.text, "\n\n") {
			if found := phraseIn(paragraph); found != "" {
				t.Errorf("%s: %q in paragraph %d is an old phrase; see oldPhrases", d.path, found, i+1)
			}
		}
	}
}

func TestWordsNoticeWhatIsOld(t *testing.T) {
	for identifier, want := range map[string]string{
		"sendForGood": "send for good", "OwnLevel": "own level", "SASLPlain": "sasl plain", "shelf2": "shelf", "_": "", "éldest": "éldest",
	} {
		if got := strings.Join(words(identifier), " "); got != want {
			t.Errorf("%s is %q, want %q", identifier, got, want)
		}
	}
	for text, want := range map[string]int{
		"package p\nvar myShelf, OwnLevel, ownLevel int\n":                       2,
		"package p\nvar self int\n":                                              0,
		"package p\n// It is turned\n// away for ever.\nvar a int\n":             1,
		"package p\nvar a = \"it lets in\" // whoever\n":                         2,
		"package p\n// It is rejected.\nvar letIn = \"forever lettering ink\"\n": 0,
	} {
		s := source{"p.go", text}
		if got := append(nameFaults(s), textFaults(s)...); len(got) != want {
			t.Errorf("%s: faults %q, want %d", text, got, want)
		}
	}
}
