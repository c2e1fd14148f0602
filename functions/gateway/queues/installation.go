// Package queues serves the queues of the installation: those of the setting QUEUES, and those that are created and
// removed through the API.
package queues

import (
	"context"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/queuestore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Installation knows all queues.
type Installation struct {
	Fixed []string // those of QUEUES
	Store *queuestore.Store
}

// lookPatience bounds the look for a created queue, which requests share.
const lookPatience = 5 * time.Second

// Created answers jobspec.Rules: the created queues that take jobs, and whether the named one is being removed.
func (i *Installation) Created(name string) (active []string, removing bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	known, err := i.Store.KnownWith(ctx, name)
	if err != nil {
		return nil, false, err
	}
	return known.Created(name)
}

// CreatedOrRemoving is Created for jobs that follow from a job in their queue. A queue that is being removed takes
// them.
func (i *Installation) CreatedOrRemoving(name string) (active []string, removing bool, err error) {
	active, removing, err = i.Created(name)
	if removing {
		active = append(active, name)
	}
	return active, removing, err
}

// Has reports whether there is a queue. One that is being removed still is.
func (i *Installation) Has(ctx context.Context, name string) (bool, error) {
	if slices.Contains(i.Fixed, name) {
		return true, nil
	}
	known, err := i.Store.KnownWith(ctx, name)
	_, is := known[name]
	return is, err
}

// Names returns the names of all queues: first those of QUEUES, then the others, sorted; with an error only the former.
func (i *Installation) Names(ctx context.Context) ([]string, error) {
	known, err := i.Store.Known(ctx, queuestore.UnknownAge)
	names := slices.Clone(i.Fixed)
	for name := range known {
		if !slices.Contains(i.Fixed, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[len(i.Fixed):])
	return names, err
}

// Topics returns all topics of the installation. Without an answer from the database, those of created queues are
// missing.
func (i *Installation) Topics() []jobevent.Topic {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	names, _ := i.Names(ctx)
	return jobevent.Topics(names)
}
