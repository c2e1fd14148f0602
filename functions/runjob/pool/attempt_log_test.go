package pool

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnAttemptsLogIsBounded(t *testing.T) {
	t.Parallel()
	var many AttemptLog
	for i := range 500 {
		many.Add(slog.LevelWarn, fmt.Sprint(i))
		if i == 50 {
			if lines, first := many.Drain(); len(lines) != 51 || first != 0 || lines[50].Text != "50" || lines[0].Level != "warn" {
				t.Errorf("%d lines from %d: %+v", len(lines), first, lines[50])
			}
		}
	}
	lines, first := many.Drain()
	if len(lines) != 149 || first != 51 || lines[148].Text != LogIsFull || lines[147].Text != "198" {
		t.Errorf("%d lines from %d", len(lines), first)
	}
	if lines, first := many.Drain(); len(lines) != 0 || first != 200 {
		t.Errorf("%d lines from %d", len(lines), first)
	}
	var large AttemptLog
	large.Add(slog.LevelInfo, strings.Repeat("é", 20_000))
	large.Add(slog.LevelInfo, strings.Repeat("é", 20_000))
	large.Add(slog.LevelInfo, "too much")
	lines, _ = large.Drain()
	if len(lines) != 3 || lines[2].Text != LogIsFull || len(lines[0].Text)+len(lines[1].Text) > maxLogBytes {
		t.Errorf("%d lines", len(lines))
	}
}

func TestCleanTextIsStorable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"plain": "plain", "a\x00b": "ab", "\xff!": "!", "éééééé": "éé…"} {
		if got := Clean(in, 8); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestALogIsFilledToItsLastBytes(t *testing.T) {
	t.Parallel()
	for _, left := range []int{0, 1, 2, 3, 4, 100} {
		var log AttemptLog
		log.Add(slog.LevelInfo, strings.Repeat("x", maxLogBytes-left))
		log.Add(slog.LevelInfo, "a line that may not fit")
		log.Add(slog.LevelInfo, strings.Repeat("x", maxLogBytes))
		lines, _ := log.Drain()
		size := 0
		for _, line := range lines[:len(lines)-1] {
			size += len(line.Text)
		}
		if size > maxLogBytes || size < maxLogBytes-len(more) || lines[len(lines)-1].Text != LogIsFull {
			t.Errorf("%d left: %d lines, %d bytes", left, len(lines), size)
		}
	}
}
