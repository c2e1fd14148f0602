package doctor

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

const (
	// connectPatience is how long a server may take to answer.
	connectPatience = 4 * time.Second
	// statementPatience is how long it may take for one statement.
	statementPatience = "3s"
)

// database is one as the checks see it.
type database struct {
	Database
	where string
	conn  *pgx.Conn // to the server itself, which reads only; nil: there is none
	err   error     // why not
}

// open connects to all databases at once. A role that several processes have is looked at once.
func open(ctx context.Context, installation *Installation) []*database {
	all := make([]*database, len(installation.Databases))
	var opening sync.WaitGroup
	for i, one := range installation.Databases {
		all[i] = &database{Database: one, where: one.Set.Database()}
		if one.Function != Serve {
			all[i].where += " of " + one.Function
		}
		opening.Go(func() { all[i].connect(ctx) })
	}
	opening.Wait()
	return all
}

func (d *database) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	d.conn, d.err = pgpool.Connect(ctx, d.Address.Reveal(), func(cfg *pgx.ConnConfig) {
		cfg.RuntimeParams["statement_timeout"] = statementPatience
	})
	if d.err != nil {
		return
	}
	pooled, err := pgpool.IsPooled(ctx, d.conn)
	if err == nil && !pooled { // a session of a pooler is that of others, too
		_, err = d.conn.Exec(ctx, "SET default_transaction_read_only = on")
	}
	if err != nil {
		d.err = err
		d.close()
	}
}

func (d *database) close() {
	if d.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.conn.Close(ctx)
		d.conn = nil
	}
}

// answering yields the databases that answer. The check sees nothing of the others.
func (l *look) answering() iter.Seq[*database] {
	return func(yield func(*database) bool) {
		for _, d := range l.databases {
			if d.conn == nil {
				l.result.Partial = true
				l.unseen("%s: it does not answer", d.where)
			} else if !yield(d) {
				return
			}
		}
	}
}

// each calls do with each database that answers; of a server, if once, with its first one only. An error is something
// that cannot be seen.
func (l *look) each(once bool, do func(d *database) error) {
	seen := map[string]bool{}
	for d := range l.answering() {
		cfg := d.conn.Config()
		server := fmt.Sprintf("%s:%d", cfg.Host, cfg.Port)
		key := server + "/" + cfg.Database + "/" + d.Set.Name // a database may have the schemas of several
		if once {
			key = server
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := do(d); err != nil {
			l.unseen("%s: %v", d.where, err)
		}
	}
}

// brokers is what was asked of them; it is complete once done is closed.
type brokers struct {
	done    chan struct{}
	cfg     kafkaevent.Config
	away    error
	missing []jobevent.Topic
	differ  []kafkaevent.Difference
	unseen  error
	is      kafkaevent.Versions
}

// ask asks the brokers beside the checks of the databases. Sarama takes its own time, which ctx bounds.
func ask(ctx context.Context, installation *Installation) *brokers {
	cfg, queues := installation.kafka()
	b := &brokers{cfg: cfg, done: make(chan struct{})}
	if len(cfg.Brokers) == 0 {
		close(b.done)
		return b
	}
	go func() {
		defer close(b.done)
		ctx, cancel := context.WithTimeout(ctx, 2*connectPatience)
		defer cancel()
		topics := jobevent.Topics(queues)
		if b.missing, b.away = kafkaevent.MissingTopics(ctx, cfg, topics); b.away != nil {
			return
		}
		if b.is, b.unseen = kafkaevent.ReadVersions(ctx, cfg); b.unseen != nil {
			return
		}
		b.differ, b.unseen = kafkaevent.CompareTopics(ctx, cfg, except(topics, b.missing))
	}()
	return b
}

func except(topics, missing []jobevent.Topic) (there []jobevent.Topic) {
	gone := map[string]bool{}
	for _, topic := range missing {
		gone[topic.Name] = true
	}
	for _, topic := range topics {
		if !gone[topic.Name] {
			there = append(there, topic)
		}
	}
	return there
}
