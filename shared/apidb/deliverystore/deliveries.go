package deliverystore

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// ErrNone is returned when the end of the job has no delivery, or the job has no such end.
var ErrNone error = apierror.New(apierror.NotFound, "there is no such delivery")

// Status is how far a delivery has come.
type Status string

// A delivery is PENDING until it is DELIVERED, or has FAILED for good.
const (
	Pending   Status = "PENDING"
	Delivered Status = "DELIVERED"
	Failed    Status = "FAILED"
)

// Delivery is the delivery of a job's end to its callback URL.
type Delivery struct {
	JobID      uuid.UUID
	Version    int64 // of the job when it ended
	OwnerID    string
	JobStatus  jobstate.Status // in which it ended
	URL        string
	Status     Status
	Tries      int
	NextAt     *time.Time // nil unless PENDING
	LastTryAt  *time.Time
	LastAnswer *int // HTTP status; nil: no answer
	LastError  string
	CreatedAt  time.Time
	FinishedAt *time.Time
}

// ID returns the id of the delivered event.
func (d *Delivery) ID() string { return jobevent.StatusID(d.JobID, d.Version) }

// Filter selects deliveries. An empty field excludes none.
type Filter struct {
	Status        Status
	BeforeID      uuid.UUID // those after this one in the list
	BeforeVersion int64
	Limit         int
}

// List returns the deliveries of the owner's newest jobs; more reports that others follow.
func (s *Store) List(
	ctx context.Context, owner apidb.Owner, f Filter,
) (found []Delivery, more bool, err error) {
	if f.BeforeID == uuid.Nil {
		f.BeforeID = uuid.Max
	}
	rows, err := s.listRows(ctx, owner, f)
	rows, more = apidb.Cut(rows, f.Limit)
	return newDeliveries(rows), more, apidb.Classify("list deliveries", err)
}

func (s *Store) listRows(ctx context.Context, owner apidb.Owner, f Filter) (
	rows []gen.DeliveriesListRow, err error,
) {
	p := gen.DeliveriesListParams{
		Owner: owner.Filter(), BeforeID: f.BeforeID, BeforeVersion: f.BeforeVersion, MaxDeliveries: int32(f.Limit + 1),
	}
	switch {
	case owner.Indexed():
		var some []gen.DeliveriesListOwnedRow
		some, err = s.q.DeliveriesListOwned(ctx, gen.DeliveriesListOwnedParams{
			Statuses: f.statuses(), Owner: owner.ID(), BeforeID: p.BeforeID, BeforeVersion: p.BeforeVersion,
			MaxDeliveries: p.MaxDeliveries,
		})
		for _, row := range some {
			rows = append(rows, gen.DeliveriesListRow(row))
		}
	case f.Status == "":
		rows, err = s.q.DeliveriesList(ctx, p)
	default:
		var some []gen.DeliveriesListByStatusRow
		some, err = s.q.DeliveriesListByStatus(ctx, gen.DeliveriesListByStatusParams{
			Status: string(f.Status), Owner: p.Owner, BeforeID: p.BeforeID, BeforeVersion: p.BeforeVersion,
			MaxDeliveries: p.MaxDeliveries,
		})
		for _, row := range some {
			rows = append(rows, gen.DeliveriesListRow(row))
		}
	}
	return rows, err
}

func (f Filter) statuses() []string {
	if f.Status != "" {
		return []string{string(f.Status)}
	}
	return []string{string(Pending), string(Delivered), string(Failed)}
}

// OfJob returns the newest deliveries of one of the owner's jobs, or ErrNoJob if there is no such job.
func (s *Store) OfJob(ctx context.Context, owner apidb.Owner, id uuid.UUID, limit int) ([]Delivery, error) {
	some, err := s.q.DeliveriesOfJob(ctx, gen.DeliveriesOfJobParams{
		JobID: id, MaxDeliveries: int32(limit), Owner: owner.Filter(),
	})
	if err == nil && len(some) == 0 {
		_, err = s.q.JobByID(ctx, gen.JobByIDParams{JobID: id, Owner: owner.Filter()})
	}
	var rows []gen.DeliveriesListRow
	for _, row := range some {
		rows = append(rows, gen.DeliveriesListRow(row))
	}
	return newDeliveries(rows), apidb.Classify("list the deliveries of a job", err)
}

// Retry restarts a delivery from its first try, whatever its status.
func (s *Store) Retry(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id uuid.UUID, version int64,
) (Delivery, error) {
	var rows []gen.DeliveryRetryRow
	err := apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) (err error) {
		rows, err = q.DeliveryRetry(ctx, gen.DeliveryRetryParams{JobID: id, Version: version, Owner: owner.Filter()})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return ErrNone
		}
		entry.SetOwner(rows[0].OwnerID)
		return nil
	})
	if err != nil {
		return Delivery{}, apidb.Classify("retry delivery", err)
	}
	r := rows[0]
	return newDelivery(gen.DeliveriesListRow{
		JobID: r.JobID, Version: r.Version, OwnerID: r.OwnerID, JobStatus: r.JobStatus, URL: r.URL, Status: r.Status,
		Tries: r.Tries, NextAt: r.NextAt, LastTryAt: r.LastTryAt, LastAnswer: r.LastAnswer, LastError: r.LastError,
		CreatedAt: r.CreatedAt, FinishedAt: r.FinishedAt,
	}), nil
}

func newDeliveries(rows []gen.DeliveriesListRow) []Delivery {
	found := make([]Delivery, len(rows))
	for i, row := range rows {
		found[i] = newDelivery(row)
	}
	return found
}

func newDelivery(row gen.DeliveriesListRow) Delivery {
	d := Delivery{
		JobID: row.JobID, Version: row.Version, OwnerID: row.OwnerID, JobStatus: jobstate.Status(row.JobStatus), URL: row.URL,
		Status: Status(row.Status), Tries: int(row.Tries), NextAt: row.NextAt, LastTryAt: row.LastTryAt,
		LastError: row.LastError, CreatedAt: row.CreatedAt, FinishedAt: row.FinishedAt,
	}
	if row.LastAnswer != nil {
		status := int(*row.LastAnswer)
		d.LastAnswer = &status
	}
	return d
}

// Place is a host to which deliveries of an owner go.
type Place struct{ Owner, Host string }

// DuePlace is a place, and whether a delivery is due there now.
type DuePlace struct {
	Place

	Due bool
}

// Page selects places. It takes owners in the order of their names, beginning with FromOwner, and each owner's hosts in
// the order of their names, beginning after the host in After.
type Page struct {
	FromOwner string
	After     map[string]string // hosts, by owner
	MaxOwners int
	MaxHosts  int // of each owner
}

// Turns returns the places of a page, none if no delivery is due. An owner that has no host after the one in After is
// returned with an empty host. next is the first owner of the next page; empty: this was the last page.
func (s *Store) Turns(ctx context.Context, page Page) (found []DuePlace, next string, err error) {
	owners, err := s.q.DeliveryOwners(ctx, gen.DeliveryOwnersParams{
		FromOwner: page.FromOwner, MaxOwners: int32(page.MaxOwners + 1),
	})
	if err != nil || len(owners) == 0 {
		return nil, "", apidb.Classify("find the owners to deliver for", err)
	}
	if len(owners) > page.MaxOwners {
		owners, next = owners[:page.MaxOwners], owners[page.MaxOwners]
	}
	p := gen.DeliveryTurnsParams{Owners: owners, MaxHosts: int32(page.MaxHosts)}
	for _, owner := range owners {
		p.AfterHosts = append(p.AfterHosts, page.After[owner])
	}
	rows, err := s.q.DeliveryTurns(ctx, p)
	for _, row := range rows {
		found = append(found, DuePlace{Place{row.OwnerID, row.Host}, row.Due})
	}
	return found, next, apidb.Classify("find the hosts to deliver to", err)
}

// Next returns how long until a delivery is due; ok is false if there is none.
func (s *Store) Next(ctx context.Context) (wait time.Duration, ok bool, err error) {
	seconds, err := s.q.DeliveryNext(ctx)
	if err != nil || len(seconds) == 0 {
		return 0, false, apidb.Classify("find the next delivery", err)
	}
	return time.Duration(seconds[0] * float64(time.Second)), true, nil
}

// Claimed is a delivery that this process has claimed.
type Claimed struct {
	JobID   uuid.UUID
	Version int64
	URL     string
	Place   Place
	Tries   int          // this one included
	TriedAt time.Time    // by the database's clock; with Tries it identifies this try
	Job     jobstore.Job // as it ended, without its payload
	Broken  error        // why Job cannot be read
}

// Claim claims due deliveries to some places, at most rooms[place] for each. A claimed delivery is due again after
// the lease, unless it is settled.
func (s *Store) Claim(ctx context.Context, rooms map[Place]int, lease time.Duration) ([]Claimed, error) {
	p := gen.DeliveriesClaimParams{Lease: lease}
	for place, room := range rooms {
		p.Owners, p.Hosts = append(p.Owners, place.Owner), append(p.Hosts, place.Host)
		p.Rooms = append(p.Rooms, int32(room))
	}
	rows, err := s.q.DeliveriesClaim(ctx, p)
	if err != nil {
		return nil, apidb.Classify("claim deliveries", err)
	}
	claimed := make([]Claimed, len(rows))
	for i, row := range rows {
		claimed[i] = Claimed{
			JobID: row.JobID, Version: row.Version, URL: row.URL, Place: Place{row.OwnerID, row.Host}, Tries: int(row.Tries),
			TriedAt: row.TriedAt,
		}
		claimed[i].Job, claimed[i].Broken = jobstore.EndedJob(row.Job, row.Snapshot)
	}
	return claimed, nil
}

// Tried is the result of a try.
type Tried struct {
	Status Status
	Wait   time.Duration // until the next try, if PENDING
	Answer int           // HTTP status; 0: no answer
	Error  string
}

// Settle stores the result of a try. It changes nothing if another process has claimed the delivery since.
func (s *Store) Settle(ctx context.Context, c Claimed, came Tried) error {
	p := gen.DeliverySettleParams{
		JobID: c.JobID, Version: c.Version, Tries: int32(c.Tries), TriedAt: c.TriedAt,
		Status: string(came.Status), Wait: came.Wait, LastError: came.Error,
	}
	if came.Answer != 0 {
		status := int32(came.Answer)
		p.LastAnswer = &status
	}
	_, err := s.q.DeliverySettle(ctx, p)
	return apidb.Classify("settle delivery", err)
}

// Release gives back a claimed delivery whose try did not finish.
func (s *Store) Release(ctx context.Context, c Claimed) error {
	err := s.q.DeliveryRelease(ctx, gen.DeliveryReleaseParams{
		JobID: c.JobID, Version: c.Version, Tries: int32(c.Tries), TriedAt: c.TriedAt,
	})
	return apidb.Classify("release delivery", err)
}

// DeleteOld deletes some of the deliveries that finished longer than age ago, and returns how many it deleted.
func (s *Store) DeleteOld(ctx context.Context, age time.Duration, limit int) (int64, error) {
	n, err := s.q.DeliveriesForget(ctx, gen.DeliveriesForgetParams{Age: age, MaxDeliveries: int32(limit)})
	return n, apidb.Classify("forget deliveries", err)
}

// Listen calls wake whenever a job ends that has a delivery. It ends with ctx or with its connection.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	return s.db.Listen(ctx, "jobweaver_deliveries", wake)
}
