# Of the output of go test -v: the tests that failed, each with what it wrote, and panics.
# At most "most" lines of each: its first ones, and the last.

function add(test, line) {
	n[test]++
	if (n[test] <= most / 2) head[test] = head[test] line "\n"
	else last[test, n[test]] = line
}

function show(test,    i, from) {
	printf "%s", head[test]
	from = n[test] - int(most / 2) + 1
	if (from <= most / 2) from = int(most / 2) + 1
	if (from > int(most / 2) + 1) print "    [" from - int(most / 2) - 1 " lines are left out]"
	for (i = from; i <= n[test]; i++) print last[test, i]
}

function forget() { split("", n); split("", head); split("", last); current = ""; panicked = 0 }

BEGIN { if (!most) most = 200 }

/^=== (RUN|CONT|NAME) / { if (!panicked) current = $3; next }
/^=== PAUSE / { next }
/^ *--- FAIL: / { print; show($3); n[$3] = 0; head[$3] = ""; next }
/^ *--- (PASS|SKIP): / { n[$3] = 0; head[$3] = ""; next }
/^(panic|fatal error|SIGQUIT): / && !panicked { panicked = 1; ended = current; current = "panic " NR; add(current, "in " ended) }
/^FAIL\t/ { if (panicked) show(current); print; forget(); next }
/^ok  / { forget(); next }
{ add(current, $0) }
END { if (panicked) show(current) }
