package baton

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const (
	frameEntries = 512
	frameBytes   = 1 << 20
	// messageBytes is what a sidecar reads that names no limit: gRPC's own default.
	messageBytes = 4 << 20
	// entryOverhead is more than what a message adds to its single entry.
	entryOverhead = 64
	collectFor    = time.Millisecond
)

// outbox gathers what an app sends over its stream. One writer sends it.
//
// A message leaves at once while the stream is idle. While one is being written, the next gathers. Because gRPC
// buffers what is written, answers are also collected for up to 1 ms after the last message, but only while more runs
// are open than have something to send. What is urgent (pong, leadership, capacity) leaves with the next message.
type outbox struct {
	wake  chan struct{} // something is to be sent
	hurry chan struct{} // it must not wait for more
	// collectFor is how long answers are collected for one message, under load.
	collectFor time.Duration

	mu         sync.Mutex
	urgent     *pb.AttachRequest
	entries    []entry
	open       int // runs that may still send something
	entriesMax int
	bytesMax   int
	closed     bool
}

// entry is an answer, a checkpoint or a heartbeat.
type entry struct {
	size int
	into func(*pb.AttachRequest)
}

func newOutbox() *outbox {
	return &outbox{
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), collectFor: collectFor,
		entriesMax: frameEntries, bytesMax: messageBytes,
	}
}

// limit sets what the sidecar reads in one message; 0: as before.
func (o *outbox) limit(entries, bytes uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if entries > 0 {
		o.entriesMax = min(frameEntries, int(entries))
	}
	if bytes > 0 {
		o.bytesMax = int(bytes)
	}
}

// fits tells whether an entry of this size can be sent at all.
func (o *outbox) fits(size int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return size+entryOverhead <= o.bytesMax
}

// begin counts a run that may send something.
func (o *outbox) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open++
}

// finish queues the last entry of a run; nil: it has none.
func (o *outbox) finish(last *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open--
	if last != nil {
		o.entries = append(o.entries, *last)
	}
	o.signal()
}

// put queues an entry of a run that goes on.
func (o *outbox) put(added entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entries = append(o.entries, added)
	o.signal()
}

// send queues what must not wait behind entries.
func (o *outbox) send(add func(*pb.AttachRequest)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.urgent == nil {
		o.urgent = &pb.AttachRequest{}
	}
	add(o.urgent)
	o.signal()
}

// close lets the writer end once everything is sent.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.signal()
}

// signal wakes the writer. The lock is held.
func (o *outbox) signal() {
	raise(o.wake)
	if !o.expectsMore() {
		raise(o.hurry)
	}
}

// expectsMore tells whether waiting may make the next message larger. The lock is held.
func (o *outbox) expectsMore() bool {
	return o.urgent == nil && !o.closed && o.open > len(o.entries) && len(o.entries) < o.entriesMax
}

// write sends messages until the outbox is closed and empty, which is nil, or until sending fails or `over` is closed.
func (o *outbox) write(send func(*pb.AttachRequest) error, over <-chan struct{}) error {
	var sentAt time.Time
	for {
		select {
		case <-o.wake:
		case <-over:
			return nil
		}
		o.collect(o.collectFor-time.Since(sentAt), over)
		for {
			message, closed := o.take()
			if message == nil && closed {
				return nil
			}
			if message == nil {
				break
			}
			if err := send(message); err != nil {
				return err
			}
			sentAt = time.Now()
		}
	}
}

// collect waits while more entries are expected, but no longer than it is told.
func (o *outbox) collect(pause time.Duration, over <-chan struct{}) {
	select {
	case <-o.hurry: // of an earlier message
	default:
	}
	o.mu.Lock()
	more := o.expectsMore()
	o.mu.Unlock()
	if !more || pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.hurry:
	case <-over:
	}
}

// take makes the next message: what is urgent, then entries in their order. nil: there is nothing to send.
func (o *outbox) take() (message *pb.AttachRequest, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	message, o.urgent = o.urgent, nil
	if message == nil && len(o.entries) == 0 {
		return nil, o.closed
	}
	bytes := 0
	if message == nil {
		message = &pb.AttachRequest{}
	} else {
		bytes = proto.Size(message)
	}
	budget, taken := min(frameBytes, o.bytesMax-entryOverhead), 0
	for _, next := range o.entries[:min(len(o.entries), o.entriesMax)] {
		if bytes > 0 && bytes+next.size > budget {
			break
		}
		next.into(message)
		bytes += next.size
		taken++
	}
	clear(o.entries[:taken])
	o.entries = o.entries[taken:]
	return message, o.closed
}

func raise(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
