// First defines a job type, runs a job of it and waits for the output, in few lines: go run ./clients/go/first
package main

import (
	"context"
	"fmt"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

type order struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

type receipt struct {
	Receipt string `json:"receipt"`
}

var charge = client.Task[order, receipt]{Type: "first.charge"}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	jobs := client.FromEnv()
	w := worker.New(jobs, worker.Options{})
	worker.HandleTask(w, &charge, func(_ context.Context, _ *worker.Attempt, in order) (receipt, error) {
		return receipt{fmt.Sprintf("%d cents for order %s", in.Cents, in.Order)}, nil
	})
	go func() {
		if err := w.Run(ctx); err != nil {
			panic(err)
		}
	}()
	<-w.Ready()
	made, err := charge.Run(ctx, jobs, order{"16", 4200})
	if err != nil {
		panic(err)
	}
	fmt.Println(made.Receipt)
}
