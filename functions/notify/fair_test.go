package notify

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
)

// silent returns a port that accepts connections at any loopback address and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// backlog inserts n due deliveries to a number of hosts, as copies of one job's delivery. In the URL a number replaces
// the *.
func (h *fixture) backlog(n, hosts int, url string) {
	h.t.Helper()
	id := h.ended("http://127.0.0.1:1/")
	h.exec(`insert into deliveries (job_id, version, owner_id, job_status, url, job, snapshot, next_at)
		select uuidv7(-interval '1 h'), 1, owner_id, job_status, replace($2, '*', (1 + n % $3)::text), job, snapshot, now() - interval '1 h'
		from deliveries, generate_series(1, $4::int) n where job_id = $1`, id, url, hosts, n)
	h.exec("delete from deliveries where job_id = $1", id)
}

// However many deliveries are due to hosts that hang or refuse, deliveries to other hosts go out at once, even to a new
// host, and even while the dead hosts use all tries that they may have.
func TestADeadReceiverDelaysNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hosts int
		url   string // a number replaces the *
	}{
		"one that hangs":          {1, "http://127.0.1.*:" + silent(t) + "/"},
		"a hundred that hang":     {100, "http://127.0.1.*:" + silent(t) + "/"},
		"one that refuses":        {1, "http://127.0.2.*:1/"},
		"250 that refuse":         {250, "http://127.0.2.*:1/"},
		"one that has no address": {1, "http://no-such-host-*.invalid/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.backlog(10_000, c.hosts, c.url)
			f := h.function()
			f.delays, f.tryFor = delays, time.Second
			h.run(f)
			live := receive(t, nil)
			for range 5 { // until after the first tries to the dead hosts have ended
				began := time.Now()
				id := h.ended(live.URL)
				due := time.Now()
				live.next()
				late := time.Since(began)
				h.untilStatus(id, deliverystore.Delivered)
				n := h.ahead(id, due)
				if t.Logf("it came after %s and %d tries", late, n); late > 15*time.Second || n > atOnce {
					t.Errorf("it came after %s and %d tries", late, n)
				}
				<-time.After(250 * time.Millisecond)
			}
			h.check(f)
		})
	}
}

// ahead returns how many tries of other deliveries began after an instant and before the only try of this job's
// delivery. They are few, however slow the machine is.
func (h *fixture) ahead(id uuid.UUID, since time.Time) (n int) {
	h.t.Helper()
	conn := h.connect()
	defer conn.Close(h.t.Context())
	if err := conn.QueryRow(h.t.Context(), `select count(*) from deliveries as mine join deliveries as other
		on other.last_try_at >= $2 and other.last_try_at < mine.last_try_at
		where mine.job_id = $1 and mine.tries = 1`, id, since).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// check compares the function's counts with the tries under way.
func (h *fixture) check(f *Function) {
	h.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var trying counts
	for name, host := range f.hosts.of {
		trying[host.kind] += host.trying
		if host.trying < 0 || host.trying > atHost {
			h.t.Errorf("%s has %d", name, host.trying)
		}
	}
	if trying != f.hosts.trying || trying.all() > atOnce {
		h.t.Errorf("counts %v, not %v", f.hosts.trying, trying)
	}
}

// Each delivery to a host is retried by itself. A host that asks for fewer calls gets fewer, over all its deliveries.
func TestAHostThatIsTooBusyIsCalledLess(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]kind{200: good, 404: good, 429: slow, 500: good, 502: slow, 503: slow, 504: slow} {
		if got := shown(deliverystore.Tried{Answer: status}, nil, 0); got != want {
			t.Errorf("%d shows %v, not %v", status, got, want)
		}
	}
}

func TestHostsShareWhatIsFree(t *testing.T) {
	t.Parallel()
	var h hosts
	now := time.Now()
	begin := func(rooms map[deliverystore.Place]int) {
		for place, room := range rooms {
			for range room {
				h.begin(place, now)
			}
		}
	}
	at := func(host string) deliverystore.Place { return deliverystore.Place{Owner: "acme", Host: host} }
	var found []deliverystore.DuePlace
	for n := range 300 {
		found = append(found, deliverystore.DuePlace{Place: at(fmt.Sprintf("h%03d", n)), Due: n%2 == 0})
	}
	rooms, seen := h.rooms(found, now)
	if len(rooms) != atNotGood*3/4/atNewHost || seen != 300 || rooms[at("h000")] != atNewHost {
		t.Errorf("new ones share %v after %d", rooms, seen)
	}
	begin(rooms)
	if again, _ := h.rooms(found, now); len(again) != 0 {
		t.Errorf("new ones get %v more", again)
	}
	for place := range rooms {
		shown := slow
		if place == at("h000") {
			shown = good
		}
		h.end(place, shown)
		h.end(place, shown)
	}
	if rooms, _ = h.rooms(found, now); rooms[at("h000")] != atHost || rooms[at("h002")] != atHost || rooms[at("h144")] != atNewHost {
		t.Errorf("they share %v", rooms)
	}
	h.trying[slow] = atSlow
	if rooms, _ = h.rooms(found, now); rooms[at("h000")] != atHost || rooms[at("h002")] != 0 || rooms[at("h144")] != atNewHost {
		t.Errorf("beside slow ones they share %v", rooms)
	}
	h.trying[slow] = 0
	h.begin(at("h002"), now)
	if rooms, _ = h.rooms(found[:3], now); rooms[at("h002")] != 0 {
		t.Errorf("a slow one that rests gets %v", rooms)
	}
	if rooms, _ = h.rooms(found[:3], now.Add(slowRest)); rooms[at("h002")] != atHost-1 {
		t.Errorf("a slow one that has rested gets %v", rooms)
	}
	h.trying[good] += atOnce
	if rooms, seen = h.rooms(found, now); len(rooms) != 0 || seen != 0 {
		t.Errorf("of nothing they share %v after %d", rooms, seen)
	}
}

// An owner with any number of hanging hosts leaves room for the new and slow hosts of other owners, and free tries go
// to the owners in turn.
func TestAnOwnersHostsLeaveRoomToOthers(t *testing.T) {
	t.Parallel()
	var h hosts
	now := time.Now()
	var found []deliverystore.DuePlace
	for n := range 1000 {
		found = append(found, deliverystore.DuePlace{Place: deliverystore.Place{Owner: "many", Host: fmt.Sprintf("h%03d", n)}, Due: true})
	}
	rooms, _ := h.rooms(inTurn(found), now)
	for place, room := range rooms {
		for range room {
			h.begin(place, now)
		}
	}
	few := deliverystore.Place{Owner: "few", Host: "z"}
	turns := inTurn(append(found, deliverystore.DuePlace{Place: few, Due: true}))
	if rooms, _ := h.rooms(turns, now); rooms[few] != atNewHost {
		t.Errorf("while another owner has all that it may, a new host has %v", rooms)
	}
	for place := range rooms { // all hang
		for range rooms[place] {
			h.end(place, slow)
		}
	}
	later := now.Add(slowRest)
	rooms, _ = h.rooms(turns, later)
	all := 0
	for place, room := range rooms {
		if place.Owner == "many" {
			all += room
		}
	}
	if all > atNotGood*3/4 || rooms[few] != atNewHost {
		t.Errorf("%d for hosts that hang, %v", all, rooms[few])
	}
	if place := slices.IndexFunc(turns, func(p deliverystore.DuePlace) bool { return p.Place == few }); place > 1 {
		t.Errorf("the only host of an owner has its turn after %d others", place)
	}
}

// The same with deliveries in the database, where the owner of many hosts is the first by name.
func TestAnOwnerOfManyHostsThatHangHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.backlog(10_000, 250, "http://127.0.3.*:"+silent(t)+"/")
	h.exec("update deliveries set owner_id = 'a'")
	f := h.function()
	f.grace = lastWord // the tries last for 30 s, longer than the test
	h.run(f)
	live := receive(t, nil)
	h.untilTrying(f, atNotGood/2)
	for range 3 {
		due := time.Now()
		id := h.ended(live.URL)
		live.next()
		h.untilStatus(id, deliverystore.Delivered)
		if n := h.ahead(id, due); n > atOnce {
			t.Errorf("it came after %d tries", n)
		}
	}
	h.check(f)
}

// untilTrying waits until this many tries are under way.
func (h *fixture) untilTrying(f *Function, n int) {
	h.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(5 * time.Millisecond) {
		f.mu.Lock()
		trying := f.hosts.trying.all()
		f.mu.Unlock()
		if trying >= n {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("%d tries are under way", trying)
		}
	}
}
