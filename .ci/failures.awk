# What the failed tests in the output of `go test` wrote, with and without -v. The file is read twice.
FNR == 1 { pass++ }
pass == 1 && match($0, /^ *--- FAIL: [^ ]+/) { split($0, word, " "); failed[word[3]] = 1 }
pass == 1 { next }
/^=== (RUN|NAME|CONT|PAUSE) / { within = $3 in failed; next }
/^ *--- / { within = /--- FAIL: /; if (within) print; next }
/^(ok|FAIL|PASS|\?)/ { within = /^FAIL[ \t]/; if (within) print; within = 0; next }
/^panic: |DATA RACE|^fatal error: / { within = 1 }
within && lines++ < 200
