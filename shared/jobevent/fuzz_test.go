package jobevent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// FuzzDeleted checks that what is read from a deleted event can be written to an event and reads the same again. Any
// other event is ErrInvalid.
func FuzzDeleted(f *testing.F) {
	for _, at := range []string{
		"2026-01-02T03:04:05.123456789Z", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59", "2026-06-30T23:59:60Z", "",
		"2026-01-02T03:04:05,1Z",
	} {
		f.Add("1", "COMPLETED", at, "0", "")
	}
	f.Add("9223372036854775807", "FAILED", "2026-01-02T03:04:05Z", "2147483647", "A.B")
	f.Add("+7", "CANCELLED", "2026-01-02T03:04:05+14:00", "2147483648", "")
	f.Add("0", "RUNNING", "2026-01-02T03:04:05Z", "-1", "x")
	f.Fuzz(func(t *testing.T, version, status, at, attempt, code string) {
		deleted, err := NewDeleted(Meta{Function: "command", JobID: uuid.New()}, 1)
		if err != nil {
			t.Fatal(err)
		}
		made := deleted.Event()
		for name, text := range map[string]string{
			ExtVersion: version, extEndedAs: status, extEndedAt: at, extAttempt: attempt, extErrorOf: code,
		} {
			made.SetExtension(name, text)
		}
		e := ItemOf(made)
		number, err := DeletedVersion(e)
		if err != nil != (number == 0) || number < 0 || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("version %q: %d, %v", version, number, err)
		}
		end, err := EndOf(e)
		if err != nil && (end != nil || !errors.Is(err, ErrInvalid)) || err == nil && (end == nil) != (status == "") {
			t.Fatalf("%+v, %v", end, err)
		}
		if end == nil {
			return
		}
		if !jobstate.Status(end.Status).Terminal() || end.Attempt < 0 {
			t.Errorf("an end: %+v", end)
		}
		if _, err := json.Marshal(end); err != nil || !utf8.ValidString(end.ErrorCode) || strings.ContainsRune(end.ErrorCode, 0) {
			t.Errorf("cannot be written: %v", err)
		}
		SetEnd(&e, *end)
		if again, err := EndOf(e); err != nil || !again.At.Equal(end.At) || again.Status != end.Status ||
			again.Attempt != end.Attempt || again.ErrorCode != end.ErrorCode {
			t.Errorf("%+v reads as %+v, %v", end, again, err)
		}
	})
}
