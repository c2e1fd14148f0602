package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
)

const (
	retentionRate = 100 // single jobs a second
	// oldAge is past the default of RETAIN_COMPLETED, but projection does not delete jobs by itself yet.
	oldAge = 180 * time.Hour
)

// retention deletes very many old jobs while single jobs come. The same installation keeps them before and after.
func (b *bench) retention(ctx context.Context) (err error) {
	sys := &system{server: b.server, dir: b.folder()}
	defer func() { err = errors.Join(err, b.tidy(context.WithoutCancel(ctx), sys)) }()
	if err := b.running(ctx, sys, nil, func(*system) error { return b.warm(ctx, sys) }); err != nil {
		return err
	}
	if err := b.server.FillEnded(ctx, b.OldJobs, oldAge); err != nil {
		return err
	}
	result := &figures.Retention{OldJobs: b.OldJobs, Rate: retentionRate}
	var keeps, deletes deletion
	for _, retain := range []string{"0", "168h", "0"} {
		err := b.running(ctx, sys, []string{"RETAIN_COMPLETED=" + retain}, func(*system) error {
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
			if used.soFar >= int64(b.OldJobs) {
				return fmt.Errorf("all %d old jobs were deleted before the end: it takes more", used.soFar)
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

// deletion is how many old jobs are deleted in a second, and how much of a core functions and PostgreSQL use in all.
type deletion struct {
	perS, core float64
	soFar      int64 // deleted in all
}

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
	used := deletion{perS: float64(after-before) / time.Since(from).Seconds(), soFar: after}
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
