package bench

import (
	"context"
	"fmt"

	"github.com/jobweaver/jobweaver/local/load/figures"
)

// keyed is how many jobs wait in the measurement of fairness keys.
const keyed = 100_000

// keys compares the rates with a backlog of one fairness key and of ten thousand, in turns.
func (b *bench) keys(ctx context.Context) error {
	result := figures.Keys{Waiting: min(keyed, b.BacklogMost), Keys: min(10_000, b.BacklogMost)}
	var one, many, ratios []float64
	for range b.Settings.Rounds {
		var rates [2]float64
		for i, keys := range []int{1, result.Keys} {
			c := backlogCase{name: fmt.Sprintf("%d fairness keys", keys), waiting: result.Waiting, keys: keys}
			r, err := b.backlogOf(ctx, c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			b.printf("%-24s %7.0f jobs/s  POST %s", c.name, r.JobsPerS, r.Post)
			rates[i] = r.JobsPerS
		}
		one, many, ratios = append(one, rates[0]), append(many, rates[1]), append(ratios, rates[1]/rates[0])
	}
	result.One, result.Many, result.Ratio = figures.SpreadOf(one), figures.SpreadOf(many), figures.SpreadOf(ratios)
	b.results.Keys = &result
	return nil
}
