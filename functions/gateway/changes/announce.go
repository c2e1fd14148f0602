package changes

import (
	"bytes"
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
)

// Announce notes a job that was accepted here, or that a request has changed, for the next look at the jobs. It is
// called after the commit. It costs nothing while no stream is open, and it never makes a request wait.
func (h *Hub) Announce(kind apidb.ChangeKind, id uuid.UUID) {
	if !h.IsWatched() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ids := h.accepted[kind]; len(ids) < mostAccepted { // the ids beyond this are not kept
		h.accepted[kind] = append(ids, id)
	}
	signal(h.toTell)
}

// IsWatched reports whether accept does anything: somebody watches here, or at another gateway.
func (h *Hub) IsWatched() bool {
	if h.db.Watched() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recording()
}

// RunAnnouncements tells of them, at its pace, streams of all gateways. When ctx ends, it tells what is left.
func (h *Hub) RunAnnouncements(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
		case <-h.toTell:
		}
		h.announceAccepted(context.WithoutCancel(ctx))
		select {
		case <-ctx.Done():
			h.announceAccepted(context.WithoutCancel(ctx))
			return
		case <-time.After(tellEvery):
		}
	}
}

func (h *Hub) announceAccepted(ctx context.Context) {
	h.mu.Lock()
	accepted := h.accepted
	h.accepted = map[apidb.ChangeKind][]uuid.UUID{}
	h.mu.Unlock()
	for kind, ids := range accepted {
		err := edge.Within(ctx, hubPatience, func(ctx context.Context) error { return h.db.NotifyCommitted(ctx, kind, ids) })
		h.telling.Note(ctx, err)
	}
}

// countOn sends changed statistics to streams of lists.
func (h *Hub) countOn(ctx context.Context) {
	tick := time.NewTicker(statsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.toCount:
		case <-tick.C:
		}
		h.mu.Lock()
		owners := make([]apidb.Owner, 0, len(h.lists))
		for owner := range h.lists {
			owners = append(owners, owner)
		}
		h.mu.Unlock()
		for _, owner := range owners {
			err := edge.Within(ctx, hubPatience, func(ctx context.Context) error { return h.countFor(ctx, owner) })
			if ctx.Err() == nil {
				h.counting.Note(ctx, err)
			}
		}
	}
}

func (h *Hub) countFor(ctx context.Context, owner apidb.Owner) error {
	stats, compared, err := h.ReadStats(ctx, owner)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.stats[owner]
	if was != nil && bytes.Equal(was.compared, compared) {
		return nil
	}
	now := &statsFrame{frame: Frame(EventStats, "", stats), compared: compared, number: 1}
	if was != nil {
		now.number += was.number
	}
	h.stats[owner] = now
	h.grow()
	return nil
}
