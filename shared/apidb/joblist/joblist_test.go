package joblist_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestEachConditionIsTried(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, c := range wanted(rows(100)) {
		tried[c.name] = true
	}
	for _, name := range joblist.Conditions() {
		if !tried[name] {
			t.Errorf("wanted lacks %s", name)
		}
	}
}

func TestEachFieldOfAFilterIsACondition(t *testing.T) {
	t.Parallel()
	for field := range reflect.TypeFor[apibody.Filter]().Fields() {
		l := joblist.List{Owner: apidb.OwnerOf("acme")}
		value := reflect.ValueOf(&l.Filter).Elem().FieldByIndex(field.Index)
		switch kind := value.Kind(); {
		case kind == reflect.Pointer:
			value.Set(reflect.New(field.Type.Elem()))
		case kind == reflect.Slice:
			value.Set(reflect.MakeSlice(field.Type, 1, 1))
		case kind == reflect.Bool:
			value.SetBool(true)
		default:
			value.SetString("acme")
			if field.Name == "Payload" {
				value.SetString("owner:acme")
			}
		}
		changes := l.Text() != joblist.List{Owner: l.Owner}.Text()
		if field.Name == "OwnerID" { // it makes the list that of an owner
			changes = joblist.List{Owner: apidb.Everyone, Filter: l.Filter}.Text() == joblist.List{Owner: l.Owner}.Text()
		}
		if changes == (field.Name == "All") {
			t.Errorf("%s excludes jobs: %t", field.Name, changes)
		}
	}
}

// With any conditions, by whatever index, an owner's list has the jobs that a look at each of all jobs finds, in either
// order.
func TestAListHasTheJobsThatMeetAllItsConditions(t *testing.T) {
	t.Parallel()
	f := apidbtest.Pooled(t)
	all := rows(400)
	fill(t, f.Pool, all)
	check := func(name string, owner apidb.Owner, conditions ...want) {
		l, want := list(owner, all, conditions...)
		seen, err := l.Newest(t.Context(), f.Pool)
		if err != nil || !slices.Equal(seen.JobIDs, want) || int(seen.Fit) != len(want) {
			t.Errorf("%s, newest: %d jobs, %d fit, want %d, %v", name, len(seen.JobIDs), seen.Fit, len(want), err)
		}
		slices.Reverse(want)
		seen, err = l.Oldest(t.Context(), f.Pool)
		if err != nil || !slices.Equal(seen.JobIDs, want) || int(seen.Fit) != len(want) {
			t.Errorf("%s, oldest: %d jobs, %d fit, want %d, %v", name, len(seen.JobIDs), seen.Fit, len(want), err)
		}
	}
	combinations(all, check)
	random, each := rand.New(rand.NewPCG(3, 4)), wanted(all)
	for range 300 {
		check("several", owners[random.IntN(len(owners))], several(random, each)...)
	}
}

// several returns three to six conditions that can be combined.
func several(random *rand.Rand, each []want) (chosen []want) {
	for _, i := range random.Perm(len(each))[:3+random.IntN(4)] {
		c := each[i]
		if !slices.ContainsFunc(chosen, func(o want) bool {
			return o.name == c.name || strings.HasPrefix(o.name, "search") && strings.HasPrefix(c.name, "search")
		}) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// However small the pages are, together they have each job once.
func TestThePagesOfAListAreTheList(t *testing.T) {
	t.Parallel()
	f := apidbtest.Pooled(t)
	all := rows(200)
	fill(t, f.Pool, all)
	random, each := rand.New(rand.NewPCG(5, 6)), wanted(all)
	for range 60 {
		l, want := list(owners[random.IntN(len(owners))], all, several(random, each)[:1]...)
		for _, newest := range []bool{true, false} {
			if !newest {
				slices.Reverse(want)
			}
			page, got := l, []uuid.UUID{}
			for page.MostSeen, page.Max = 11, 3; ; {
				read := page.Oldest
				if newest {
					read = page.Newest
				}
				seen, err := read(t.Context(), f.Pool)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, seen.JobIDs...)
				last := seen.LastID
				if len(seen.JobIDs) == page.Max {
					last = seen.JobIDs[page.Max-1]
				} else if int(seen.Seen) < page.MostSeen {
					break
				}
				if page.AfterID = last; newest {
					page.AfterID, page.BeforeID = uuid.Nil, last
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v, newest: %t: %d jobs, want %d", l, newest, len(got), len(want))
			}
		}
	}
}

// A value cannot change a statement, whatever it contains.
func TestTheTextOfAStatementDoesNotDependOnValues(t *testing.T) {
	t.Parallel()
	f := apidbtest.Pooled(t)
	all := rows(40)
	fill(t, f.Pool, all)
	const hostile = `x' or true); drop table jobs; -- @owner $1 [n] [message] %s`
	for _, c := range wanted(all) {
		plain, evil := joblist.List{Owner: apidb.OwnerOf("acme")}, joblist.List{Owner: apidb.OwnerOf(hostile), MostSeen: 100, Max: 100}
		c.set(&plain)
		c.set(&evil)
		for _, value := range []*string{
			&evil.JobType, &evil.Queue, &evil.Tag, &evil.OrderingKey, &evil.ErrorCode, &evil.IdempotencyKey, &evil.OwnerID,
		} {
			if *value != "" {
				*value = hostile
			}
		}
		if c.name == "tagPrefix" {
			evil.Tag += "*"
		}
		if evil.Payload != "" {
			evil.Payload = "['" + strings.ReplaceAll(hostile, "'", `\'`) + "']:" + hostile
		}
		if evil.Search != "" && c.name != "searchId" {
			evil.Search = hostile
		}
		if plain.Text() != evil.Text() {
			t.Errorf("%s: the statement is\n%s\nand with another value\n%s", c.name, plain.Text(), evil.Text())
		}
		if seen, err := evil.Newest(t.Context(), f.Pool); err != nil || len(seen.JobIDs) > 0 {
			t.Errorf("%s: it finds %v, %v", c.name, seen.JobIDs, err)
		}
	}
}

// With any two conditions, with no statistics and with wrong ones, a list reads only the indexes of its sources, and no
// more jobs of each than it may look at.
func TestAListReadsFewJobsOfItsSources(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	for _, statistics := range []string{"none", "of empty tables", "fresh"} {
		t.Run("statistics "+statistics, func(t *testing.T) {
			t.Parallel()
			f, plans := apidbtest.Watched(t)
			all := rows(5_000)
			fill(t, f.Pool, all)
			switch statistics {
			case "fresh":
				f.Exec(t, "vacuum analyze jobs")
			case "of empty tables":
				pgtest.LookEmpty(t, f.Pool)
			}
			used, fromOldest := map[string]bool{}, false
			combinations(all, func(name string, owner apidb.Owner, conditions ...want) {
				l, _ := list(owner, all, conditions...)
				l.MostSeen = 20
				plans.Forget()
				read := l.Newest
				if fromOldest = !fromOldest; fromOldest { // one list is read in this direction, the next one in the other
					read = l.Oldest
				}
				if _, err := read(t.Context(), f.Pool); err != nil {
					t.Fatal(err)
				}
				checkPlan(t, name, slices.Concat(slices.Collect(maps.Values(plans.Seen()))...), l.Indexes(fromOldest), used)
			})
			for _, index := range joblist.EveryIndex() {
				if !used[index] {
					t.Errorf("no list reads %s", index)
				}
			}
		})
	}
}

// mostOfAll is how many jobs a source may have whose index is not in the order of ids.
const mostOfAll = 5_000

func checkPlan(t *testing.T, name string, plans []pgtest.Node, indexes map[string]bool, used map[string]bool) {
	t.Helper()
	for _, plan := range plans {
		plan.Walk(func(n pgtest.Node) {
			if n.Relation != "jobs" {
				return
			}
			used[n.Index] = true
			most := 20.0
			if whole, ok := indexes[n.Index]; whole {
				most = mostOfAll
			} else if !ok && n.Index != "jobs_pkey" { // by which it reads messages
				t.Errorf("%s: it reads %s %s", name, n.Type, n.Index)
			}
			if rows := n.Loops * (n.Rows + n.Removed); rows > most {
				t.Errorf("%s: it visits %.0f jobs by %s %s", name, rows, n.Type, n.Index)
			}
		})
	}
}

// A trace id that the gateway made is in no index. A trace id from elsewhere is in one, and so is that of a request
// that took long.
func TestOnlyATraceFromElsewhereHasAnEntryInAnIndex(t *testing.T) {
	t.Parallel()
	s := apidbtest.Pooled(t)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := func(ms int64) uuid.UUID {
		id := uuid.Must(uuid.NewV7())
		idtime.Put(&id, 1_800_000_000_000+ms) // the first of 256 ms
		return id
	}
	var predicate string
	if err := s.Pool.QueryRow(t.Context(), `select pg_get_expr(indpred, indrelid) from pg_index
		where indexrelid = 'jobs_of_trace'::regclass`).Scan(&predicate); err != nil {
		t.Fatal(err)
	}
	first := at(0)
	for what, c := range map[string]struct {
		traceID, jobID uuid.UUID
		near           bool
	}{
		"at once":             {first, at(1), true},
		"at the last instant": {first, at(255), true},
		"too late":            {first, at(256), false},
		"an hour before":      {at(-3_600_000), at(0), false},
		"in the future":       {at(2), at(1), false},
		"random":              {uuid.New(), at(0), false},
		"the greatest":        {uuid.Max, at(0), false},
		"the job's own id":    {first, first, false},
	} {
		var indexed bool
		asked := "select " + predicate + " from (values ($1::uuid, $2::uuid)) as jobs (trace_id, job_id)"
		if err := s.Pool.QueryRow(t.Context(), asked, c.traceID, c.jobID).Scan(&indexed); err != nil || indexed == c.near {
			t.Errorf("%s: in the index: %t, %v", what, indexed, err)
		}
		after := *joblist.AfterNear(&c.traceID)
		if got := slices.Compare(c.jobID[:], c.traceID[:]) > 0 && slices.Compare(c.jobID[:], after[:]) < 0; got != c.near {
			t.Errorf("%s: the list looks for it by its time: %t", what, got)
		}
	}
}
