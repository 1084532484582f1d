package baton

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

func seconds(n float64) *durationpb.Duration {
	return durationpb.New(time.Duration(n * float64(time.Second)))
}

// G1: the earlier of the two ends of trust counts; a message that was held up does not stretch trust.
func TestTrustOf(t *testing.T) {
	const readAt = 100 * time.Second
	for name, test := range map[string]struct {
		length, end *durationpb.Duration
		isBoottime  bool
		want        trust
	}{
		"nothing said":            {nil, nil, true, trust{}},
		"a length":                {seconds(3), nil, true, trust{true, 103 * time.Second}},
		"an earlier end":          {seconds(3), seconds(101), true, trust{true, 101 * time.Second}},
		"a later end":             {seconds(3), seconds(200), true, trust{true, 103 * time.Second}},
		"an end alone":            {nil, seconds(101), true, trust{true, 101 * time.Second}},
		"an end on no such clock": {seconds(3), seconds(101), false, trust{true, 103 * time.Second}},
		"only such an end":        {nil, seconds(101), false, trust{}},
		"longer than any clock":   {durationpb.New(math.MaxInt64), nil, true, trust{true, math.MaxInt64}},
	} {
		message := &pb.OnBecomeLeaderRequest{TrustedFor: test.length, TrustedUntilBoottime: test.end}
		got := trustOf(message, readAt, test.isBoottime)
		if got.known != test.want.known || got.known && got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// G1: only the newest message of this very term counts, even where it ends sooner.
func TestHear(t *testing.T) {
	leader := func(leads bool, epoch uint64, length *durationpb.Duration) *pb.Leader {
		return &pb.Leader{IsLeader: leads, Epoch: epoch, TrustedFor: length}
	}
	for name, test := range map[string]struct {
		messages []*pb.Leader
		refused  bool
		left     time.Duration
	}{
		"renewed":               {[]*pb.Leader{leader(true, 7, seconds(9))}, false, 9 * time.Second},
		"shortened":             {[]*pb.Leader{leader(true, 7, seconds(1))}, false, time.Second},
		"another term":          {[]*pb.Leader{leader(true, 8, seconds(9))}, false, -time.Second},
		"no leader":             {[]*pb.Leader{leader(false, 7, seconds(9))}, false, -time.Second},
		"no leader, then again": {[]*pb.Leader{leader(false, 7, nil), leader(true, 7, seconds(2))}, false, 2 * time.Second},
		"says nothing of trust": {[]*pb.Leader{leader(true, 7, nil)}, false, -time.Second},
		"refused stays refused": {[]*pb.Leader{leader(true, 7, seconds(9))}, true, -time.Second},
	} {
		term := newTerm(ClusterContext{Epoch: 7}, trust{true, 3 * time.Second}, func() {}, func(error) {})
		if test.refused {
			term.refuse()
		}
		for _, message := range test.messages {
			term.hear(message, time.Second)
		}
		if left := term.trust.left(time.Second); left != test.left || term.leads(time.Second) != (left > 0) {
			t.Errorf("%s: %v left, want %v", name, left, test.left)
		}
	}
	silent := newTerm(ClusterContext{Epoch: 7}, trust{}, func() {}, func(error) {})
	if silent.leads(0) || silent.trust.left(0) <= 0 {
		t.Error("without a word about trust handlers may run, but the app does not act by itself")
	}
}

// The clock goes on, and is the one that the sidecar reads.
func TestBoottime(t *testing.T) {
	before := boottime()
	time.Sleep(2 * time.Millisecond)
	if passed := boottime() - before; passed < 2*time.Millisecond || passed > 5*time.Second {
		t.Errorf("%v passed", passed)
	}
}

// The old token is accepted for a minute more; nothing opens with an empty one.
func TestATokenFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	token, err := openToken(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	token.clock = func() time.Duration { return now }
	expect := func(accepted, refused []string) {
		t.Helper()
		for _, text := range accepted {
			if !token.accepts(text) {
				t.Errorf("%q was refused", text)
			}
		}
		for _, text := range refused {
			if token.accepts(text) {
				t.Errorf("%q was accepted", text)
			}
		}
	}
	expect([]string{"one"}, []string{"two", ""})
	write("two")
	expect([]string{"two", "one"}, []string{"", "tw"})
	now = previousAccepted
	expect([]string{"two"}, []string{"one", ""})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect([]string{"two"}, []string{"one", ""})
	for _, unusable := range []string{"", "tökén", "three\nfour"} {
		write(unusable)
		if expect([]string{"two"}, []string{"", unusable}); token.current() != "two" {
			t.Errorf("current is %q", token.current())
		}
	}
}
