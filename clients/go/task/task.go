// Task defines job types in code, runs them, and makes a flow of them: go run ./clients/go/task
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

type order struct {
	Order string `json:"order"`
	Cents int    `json:"cents,omitempty" jsonschema:"0: it is free"`
}

type receipt struct {
	Receipt string `json:"receipt"`
}

type shipment struct {
	Receipt string   `json:"receipt"`
	Boxes   []string `json:"boxes"`
}

type items struct {
	Items []string `json:"items"`
}

var (
	charge = client.Task[order, receipt]{
		Type: "shop.charge", Title: "Charge a card", Defaults: client.JobRequest{MaxRetryCount: new(5)},
	}
	list = client.Task[order, items]{Type: "shop.list"}
	pack = client.Task[string, string]{Type: "shop.pack"}
	ship = client.Task[shipment, string]{Type: "shop.ship"}
)

func run(ctx context.Context) error {
	jobs := client.FromEnv() // of JOBWEAVER_URL and JOBWEAVER_API_KEY
	w := worker.New(jobs, worker.Options{})
	worker.HandleTask(w, &charge, func(ctx context.Context, a *worker.Attempt, in order) (receipt, error) {
		// An attempt after a crash does not charge again.
		text, err := durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (string, error) {
			return fmt.Sprintf("%d cents for order %s", in.Cents, in.Order), nil
		})
		return receipt{text}, err
	})
	worker.HandleTask(w, &list, func(context.Context, *worker.Attempt, order) (items, error) {
		return items{[]string{"a book", "a pen"}}, nil
	})
	worker.HandleTask(w, &pack, func(_ context.Context, _ *worker.Attempt, item string) (string, error) {
		return "a box with " + item, nil
	})
	worker.HandleTask(w, &ship, func(_ context.Context, _ *worker.Attempt, in shipment) (string, error) {
		return fmt.Sprintf("%d boxes: %s", len(in.Boxes), in.Receipt), nil
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	select {
	case <-w.Ready():
	case err := <-ended:
		stop()
		return err
	}
	err := use(ctx, jobs)
	stop()
	return errors.Join(err, <-ended)
}

func use(ctx context.Context, jobs *client.Client) error {
	// One job: the payload and the output have types.
	charged, err := charge.Run(ctx, jobs, order{"16", 4200}, func(r *client.JobRequest) { r.Tags = []string{"vip"} })
	if err != nil {
		return err
	}
	fmt.Println(charged.Receipt)

	// A flow: outputs stand for values that are not known yet.
	flow := client.NewFlow(client.FlowRequest{Name: "order 17"})
	listed := client.AddJob(flow, "list", &list, order{Order: "17"})
	paid := client.AddJob(flow, "charge", &charge, order{"17", 900})
	packed := client.AddEach(flow, "pack", &pack, listed.Output("items"), client.Item{})
	client.AddJob(flow, "ship", &ship, map[string]any{"receipt": paid.Output("receipt"), "boxes": packed.Output()})
	made, err := flow.Submit(ctx, jobs)
	if err != nil {
		return err
	}
	shipped, err := ship.Wait(ctx, jobs, made.Jobs["ship"])
	fmt.Println(shipped)
	return err
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the context is over, too
	}
}
