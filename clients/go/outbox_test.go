package baton

import (
	"slices"
	"testing"
	"time"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

func anAnswer(id uint64, size int) entry {
	return entry{size, func(m *pb.AttachRequest) { m.Answers = append(m.Answers, &pb.RunAnswer{RunId: id}) }}
}

// writing runs a writer whose messages must be fetched, one by one.
func writing(t *testing.T, out *outbox) <-chan *pb.AttachRequest {
	t.Helper()
	sent, over, ended := make(chan *pb.AttachRequest), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- out.write(func(m *pb.AttachRequest) error {
			select {
			case sent <- m:
			case <-over:
			}
			return nil
		}, over)
	}()
	t.Cleanup(func() {
		close(over)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return sent
}

// A lone answer leaves at once, even right after another message; under load the answers are collected.
func TestAnswersAreCollectedOnlyUnderLoad(t *testing.T) {
	out := newOutbox()
	out.collectFor = time.Hour
	sent := writing(t, out)
	for range 2 {
		out.begin()
		lone := anAnswer(1, 10)
		out.finish(&lone)
		if message := <-sent; len(message.GetAnswers()) != 1 {
			t.Fatalf("sent %v", message)
		}
	}
	for range 3 {
		out.begin()
	}
	for id := range uint64(3) {
		answer := anAnswer(id, 10)
		out.finish(&answer)
	}
	if message := <-sent; len(message.GetAnswers()) != 3 {
		t.Errorf("sent %v", message)
	}
	out.begin()
	out.begin()
	out.put(anAnswer(1, 10)) // one of two runs: the other may send something too
	out.send(func(m *pb.AttachRequest) { m.Pong = &pb.Pong{Number: 5} })
	message := <-sent
	if message.GetPong().GetNumber() != 5 {
		message = <-sent
	}
	if message.GetPong().GetNumber() != 5 {
		t.Errorf("the pong waited: %v", message)
	}
}

// What comes while a message is written is gathered, within the limits; what is urgent goes first.
func TestMessagesAreGatheredWithinTheLimits(t *testing.T) {
	out := newOutbox()
	out.limit(100, 1000)
	sent := writing(t, out)
	out.put(anAnswer(0, 10))
	for id := range uint64(150) {
		out.put(anAnswer(id, 1))
	}
	out.put(anAnswer(0, 900))
	out.put(anAnswer(0, 900))
	out.send(func(m *pb.AttachRequest) { m.Capacity = new(uint32) })
	out.close()
	var sizes []int
	urgentAt := -1
	for total := 0; total < 153; {
		message := <-sent
		if message.Capacity != nil {
			urgentAt = len(sizes)
		}
		total += len(message.GetAnswers())
		sizes = append(sizes, len(message.GetAnswers()))
	}
	if urgentAt > 1 {
		t.Errorf("what is urgent came in message %d of %v", urgentAt, sizes)
	}
	if slices.Max(sizes) > 100 || len(sizes) > 6 || !slices.Equal(sizes[len(sizes)-1:], []int{1}) {
		t.Errorf("messages of %v", sizes)
	}
}
