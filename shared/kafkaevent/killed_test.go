package kafkaevent

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/testwait"
)

// memberEnv makes the test binary a member that the test will kill. Its value has the brokers, the group and the topic.
const memberEnv = "KAFKAEVENT_TEST_MEMBER"

func beKilled(place string) {
	var brokers, group, topic string
	if _, err := fmt.Sscan(place, &brokers, &group, &topic); err != nil {
		panic(err)
	}
	c, err := NewBatchConsumer(Config{Brokers: []string{brokers}}, group, []string{topic}, 100)
	if err != nil {
		panic(err)
	}
	_ = c.Run(context.Background(), whole(func(context.Context, []*sarama.ConsumerMessage) error {
		fmt.Println("took a batch")
		select {}
	}))
}

func TestAKilledMembersPartitionsMoveAndItsRecordsComeAgain(t *testing.T) {
	t.Parallel()
	ctx := testwait.Within(t, 2*time.Minute)
	p := newPlace(t)
	publish(t, p.producer(), p.events(0, 100, 20))
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", memberEnv, p.cfg.Brokers[0], p.group, p.topic))
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = bufio.NewReader(out).ReadString('\n')
	_ = victim.Process.Kill()
	_ = victim.Wait()
	if err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	got := newSeen()
	p.member(500, got.handle)
	got.wait(ctx, t, 100)
	if took := time.Since(killed); took > 2*sessionTimeout {
		t.Errorf("its records came again after %s", took)
	}
}
