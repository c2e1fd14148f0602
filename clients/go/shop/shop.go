// Shop is the worker of a shop. Kill it at any moment: each sale goes on where it was, and reserves its stock once.
//
//	go run ./clients/go/shop
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

type order struct {
	Order string   `json:"order"`
	To    string   `json:"to"`
	Items []string `json:"items"`
}

type letter struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

type sale struct {
	Boxes  []string `json:"boxes"`
	Mailed string   `json:"mailed"`
}

var (
	sellTask = client.Task[order, sale]{Type: "shop.go.sell"}
	packTask = client.Task[string, string]{Type: "shop.go.pack"}
	mailTask = client.Task[letter, string]{Type: "shop.go.mail"}
)

// enter writes into a file that stands for the systems which the shop calls.
func enter(text string) error {
	file, err := os.OpenFile(cmp.Or(os.Getenv("LEDGER"), "ledger.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = fmt.Fprintln(file, text)
	return err
}

func printLabel(order string) error {
	err := enter("prints " + order)
	time.Sleep(2 * time.Second) // a worker that is killed here has not stored the step: the next one prints again
	return err
}

func sell(ctx context.Context, a *worker.Attempt, in order) (out sale, err error) {
	if _, err := durable.Step(ctx, a.Checkpoint, "reserve", func(context.Context) (any, error) {
		return nil, enter("reserved " + in.Order)
	}); err != nil {
		return out, err
	}
	if _, err := durable.Step(ctx, a.Checkpoint, "print", func(context.Context) (any, error) {
		return nil, printLabel(in.Order)
	}); err != nil {
		return out, err
	}
	paid, err := worker.Receive(ctx, a, "paid", worker.EventWait{
		Type: "com.shop.paid", Match: map[string]any{"order": in.Order}, Timeout: 7 * 24 * time.Hour,
	})
	if err != nil {
		return out, err
	}
	if paid == nil {
		return out, &worker.Failure{Code: "SHOP.UNPAID", Message: "order " + in.Order + " was not paid in time"}
	}
	var payment struct{ Cents int }
	if err := paid.DecodeData(&payment); err != nil {
		return out, err
	}
	if out.Boxes, err = worker.CallAll(ctx, a, "pack", &packTask, in.Items); err != nil {
		return out, err
	}
	text := fmt.Sprintf("%d boxes for %d cents", len(out.Boxes), payment.Cents)
	out.Mailed, err = worker.Call(ctx, a, "mail", &mailTask, letter{in.To, text})
	return out, err
}

// mail sends many mails at once, as a mail provider takes them.
func mail(_ context.Context, items []*worker.BatchItem[letter, string]) error {
	for _, item := range items {
		text := "mailed " + item.Payload.To
		item.Return(text, enter(text))
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w := worker.New(client.FromEnv(), worker.Options{})
	worker.HandleTask(w, &sellTask, sell)
	worker.HandleTask(w, &packTask, func(_ context.Context, _ *worker.Attempt, item string) (string, error) {
		return "a box with " + item, nil
	})
	worker.HandleBatch(w, &mailTask, worker.BatchOptions{Max: 50}, mail)
	if err := w.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the context is over, too
	}
}
