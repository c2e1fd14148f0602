package schedulestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// twoKeys returns three sealers: one that does not know yet that a second key was promoted, one that does, and one
// with only the second key.
func twoKeys(t *testing.T) (behind, ahead, alone *sealing.Sealer) {
	t.Helper()
	dir := t.TempDir()
	use := func(name string, change func(*sealing.Keyset) error) *sealing.Sealer {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(filepath.Join(dir, "keyset"))
		if err != nil || os.WriteFile(path, text, 0o600) != nil {
			t.Fatal(err)
		}
		keys, err := sealing.OpenKeyset(path)
		if err != nil || change(keys) != nil {
			t.Fatal(err)
		}
		sealer, err := sealing.New(sealing.Config{File: path})
		if err != nil {
			t.Fatal(err)
		}
		return sealer
	}
	keys, err := sealing.CreateKeyset(filepath.Join(dir, "keyset"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := keys.Keys()
	if err != nil {
		t.Fatal(err)
	}
	second, err := keys.Add()
	if err != nil {
		t.Fatal(err)
	}
	promote := func(k *sealing.Keyset) error { return k.Promote(second) }
	return use("behind", func(*sealing.Keyset) error { return nil }), use("ahead", promote),
		use("alone", func(k *sealing.Keyset) error { return errors.Join(promote(k), k.Remove(first[0].ID)) })
}

// putSealed stores a schedule with its job sealed; n distinguishes one request from another.
func (h *fixture) putSealed(t *testing.T, sealer *sealing.Sealer, name string, n int) error {
	asked := apidbtest.Schedule(t, name, eachSecond)
	asked.JobJSON = fmt.Appendf(nil, `{"jobType": "SIMULATION", "payload": {"steps": []}, "priority": %d}`, n)
	asked.JobJSON = sealer.Seal(sealing.OfSchedule(name, ""), asked.JobJSON)
	_, _, err := h.Schedules.Put(t.Context(), nil, apidb.Everyone, asked, nil)
	return err
}

func TestSchedulesAreSealedWithTheKeyInUse(t *testing.T) {
	t.Parallel()
	h := open(t)
	behind, ahead, alone := twoKeys(t)
	if err := errors.Join(h.putSealed(t, nil, "plain", 1), h.putSealed(t, behind, "old", 2), h.putSealed(t, ahead, "new", 3),
		h.putSealed(t, behind, "moved", 4), h.putSealed(t, behind, "thief", 5)); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, "update schedules set job = (select job from schedules where name = 'old') where name = 'moved'")
	as := apidbtest.One[string](t, h, "select job::text from schedules where name = 'new'")
	if n, err := h.Schedules.Seal(t.Context(), nil, uuid.Nil, uuid.Nil); n != 0 || err != nil {
		t.Errorf("without a key it sealed %d, %v", n, err)
	}
	thief := apidbtest.One[uuid.UUID](t, h, "select schedule_id from schedules where name = 'moved'")
	n, err := h.Schedules.Seal(t.Context(), ahead, uuid.Nil, thief) // the first page of two
	if n != 2 || !errors.Is(err, sealing.ErrAltered) || !bytes.Contains([]byte(err.Error()), []byte(thief.String())) {
		t.Errorf("of the first page it sealed %d, %v", n, err)
	}
	if n, err := h.Schedules.Seal(t.Context(), ahead, thief, uuid.Nil); n != 1 || err != nil {
		t.Errorf("of the last page it sealed %d, %v", n, err)
	}
	if n, err := h.Schedules.Seal(t.Context(), ahead, uuid.Nil, uuid.Nil); n != 0 || !errors.Is(err, sealing.ErrAltered) {
		t.Errorf("again it sealed %d, %v", n, err)
	}
	if as != apidbtest.One[string](t, h, "select job::text from schedules where name = 'new'") {
		t.Error("what the key in use had sealed was written again")
	}
	for name, want := range map[string]string{"plain": "1}", "old": "2}", "new": "3}", "moved": "", "thief": "5}"} {
		row, err := h.Schedules.Get(t.Context(), apidb.Everyone, apidb.Key{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := row.Open(alone); !bytes.HasSuffix(row.Job, []byte(want)) || (err != nil) != (want == "") {
			t.Errorf("with the new key alone %s is %s, %v", name, row.Job, err)
		}
	}
}

// Seal runs concurrently with a Put and with a sealer that does not know the promoted key: the last Put stays.
func TestASealedScheduleIsNeverTheOneBefore(t *testing.T) {
	t.Parallel()
	h := open(t)
	behind, ahead, alone := twoKeys(t)
	const puts = 15
	var all errgroup.Group
	for i := range 2 {
		all.Go(func() error {
			for n := range puts {
				if err := h.putSealed(t, behind, fmt.Sprint("s", i), n); err != nil {
					return err
				}
			}
			return nil
		})
		for _, sealer := range []*sealing.Sealer{ahead, behind} {
			all.Go(func() error {
				for range puts {
					if _, err := h.Schedules.Seal(t.Context(), sealer, uuid.Nil, uuid.Nil); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Schedules.Seal(t.Context(), ahead, uuid.Nil, uuid.Nil); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		row, err := h.Schedules.Get(t.Context(), apidb.Everyone, apidb.Key{Name: fmt.Sprint("s", i)})
		if err != nil {
			t.Fatal(err)
		}
		if err := row.Open(alone); err != nil || !bytes.HasSuffix(row.Job, fmt.Appendf(nil, "%d}", puts-1)) {
			t.Errorf("%s is %s, %v", row.Name, row.Job, err)
		}
	}
}
