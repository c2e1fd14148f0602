package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

const (
	retentionRate = 100 // single jobs a second
	// oldAge is past the default of RETAIN_COMPLETED, but projection does not delete jobs by itself yet.
	oldAge = 180 * time.Hour
)

// retention deletes very many old jobs while single jobs come. The same installation keeps them before and after.
func (b *bench) retention(ctx context.Context) (err error) {
	dir := b.folder()
	defer func() {
		err = errors.Join(err, b.server.Clear(context.WithoutCancel(ctx)), os.RemoveAll(dir))
	}()
	if err := b.restarted(ctx, dir, "168h", func(sys *system) error { return b.warm(ctx, sys) }); err != nil {
		return err
	}
	if err := b.server.FillEnded(ctx, b.OldJobs, oldAge); err != nil {
		return err
	}
	result := &figures.Retention{OldJobs: b.OldJobs, Rate: retentionRate}
	var keeps, deletes deletion
	for _, retain := range []string{"0", "168h", "0"} {
		err := b.restarted(ctx, dir, retain, func(sys *system) error {
			start, used, err := b.beside(ctx, sys)
			if err != nil {
				return err
			}
			b.printf("RETAIN_COMPLETED=%-4s  %.0f deleted/s  POST→start %s", retain, used.perS, start)
			if retain == "0" {
				result.Keeps = append(result.Keeps, start)
				keeps.core += used.core / 2
				return nil
			}
			result.Deletes, deletes = start, used
			if gone, err := deletedJobs(ctx, sys); err != nil || gone >= int64(b.OldJobs) {
				return errors.Join(err, fmt.Errorf("all %d old jobs were deleted before the end: it takes more", gone))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	result.DeletedPerS = deletes.perS
	result.DeletedCPU = (deletes.core - keeps.core) * 1e6 / deletes.perS
	b.results.Retention = result
	return nil
}

// restarted runs use on an installation that finds what an earlier one in the same folder has left.
func (b *bench) restarted(ctx context.Context, dir, retain string, use func(*system) error) (err error) {
	started, err := rig.StartSystem(ctx, rig.SystemConfig{
		Dir: dir, Server: b.server, Slots: b.Settings.Slots, SlotQueue: b.Settings.SlotQueue,
		Env: []string{"RETAIN_COMPLETED=" + retain},
	})
	if err != nil {
		return err
	}
	sys := &system{System: started, api: apiload.New(started.URL), server: b.server, dir: dir}
	defer func() {
		sys.api.Close()
		err = errors.Join(err, sys.Stop())
	}()
	return use(sys)
}

// deletion is how many old jobs are deleted in a second, and how much of a core functions and PostgreSQL use in all.
type deletion struct{ perS, core float64 }

// beside returns how soon single jobs start, and what is deleted meanwhile.
func (b *bench) beside(ctx context.Context, sys *system) (figures.Distribution, deletion, error) {
	if err := pass(ctx, settling); err != nil {
		return figures.Distribution{}, deletion{}, err
	}
	before, err := deletedJobs(ctx, sys)
	if err != nil {
		return figures.Distribution{}, deletion{}, err
	}
	from := time.Now()
	l, err := b.latencyAt(ctx, sys, retentionRate)
	if err != nil {
		return figures.Distribution{}, deletion{}, err
	}
	after, err := deletedJobs(ctx, sys)
	used := deletion{perS: float64(after-before) / time.Since(from).Seconds()}
	for _, process := range []string{"functions", "postgres"} {
		used.core += l.Uses[process].CPU * retentionRate / 1e6
	}
	return l.Start, used, err
}

// deletedJobs returns how many jobs the API has deleted.
func deletedJobs(ctx context.Context, sys *system) (int64, error) {
	tables, err := sys.server.Tables(ctx)
	for _, t := range tables {
		if t.Database == "jobweaver_api" && t.Name == "jobs" {
			return t.Deletes, err
		}
	}
	return 0, errors.Join(err, fmt.Errorf("no table of jobs"))
}
