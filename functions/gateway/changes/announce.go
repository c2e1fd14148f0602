package changes

import (
	"bytes"
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/client"
)

// Announce queues a job that this process has accepted or changed for the next notification. It is called after the
// commit. It does nothing while no stream is open at any gateway, and it never blocks a request.
func (h *Hub) Announce(kind apidb.ChangeKind, id uuid.UUID) {
	if !h.IsWatched() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ids := h.accepted[kind]; len(ids) < mostAccepted { // ids beyond this are dropped
		h.accepted[kind] = append(ids, id)
	}
	signal(h.toAnnounce)
}

// IsWatched reports whether Announce does anything: a stream is open here or at another gateway.
func (h *Hub) IsWatched() bool {
	if h.db.Watched() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recording()
}

// RunAnnouncements notifies the streams of all gateways of queued jobs, every announceEvery. When ctx ends, it sends
// what is left.
func (h *Hub) RunAnnouncements(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
		case <-h.toAnnounce:
		}
		h.announceAccepted(context.WithoutCancel(ctx))
		select {
		case <-ctx.Done():
			h.announceAccepted(context.WithoutCancel(ctx))
			return
		case <-time.After(announceEvery):
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

// countOn sends changed statistics to the streams of lists.
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
	now := &statsFrame{frame: Frame(client.EventStats, "", stats), compared: compared, number: 1}
	if was != nil {
		now.number += was.number
	}
	h.stats[owner] = now
	h.grow()
	return nil
}
