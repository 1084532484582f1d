package baton

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const modifyRounds = 100

// State is the key-value data of the cluster; works on any pod. A write is durable before it is acknowledged, and
// carries a request id of its own, so that one whose answer was lost is asked again without being done twice.
// Values are bytes, or anything that JSON can say.
type State struct {
	connection *connection
	stub       pb.StateClient
}

// Entry is one key with its value.
type Entry struct {
	Key   string
	Value []byte
	// Version rises with every write of this key and never comes back, not even after a deletion.
	Version   uint64
	UpdatedAt time.Time
	// ExpiresAt is zero for an entry that stays.
	ExpiresAt time.Time
}

// JSON reads the value; an empty one leaves `into` as it is.
func (e Entry) JSON(into any) error { return fromJSON(e.Value, into) }

// Change is one change told by [State.Watch]; of a deleted entry only key, version and time are known.
type Change struct {
	Entry
	Deleted bool
}

type (
	// PutOption is [IfVersion], [TTL] or [RequestID].
	PutOption interface{ put(*pb.StatePutRequest) }
	// DeleteOption is [IfVersion].
	DeleteOption interface{ delete(*pb.StateDeleteRequest) }

	// IfVersion makes a write a compare-and-set: [ErrConflict], and nothing is changed, if the entry has another
	// version. 0 stands for no entry.
	IfVersion uint64
	// TTL is how long after a write, or after it was made, something is gone.
	TTL time.Duration
	// RequestID makes it safe to ask again after an unknown answer, even for another process.
	RequestID string
)

func (v IfVersion) put(request *pb.StatePutRequest)       { request.ExpectedVersion = (*uint64)(&v) }
func (v IfVersion) delete(request *pb.StateDeleteRequest) { request.ExpectedVersion = (*uint64)(&v) }
func (t TTL) put(request *pb.StatePutRequest)             { request.Ttl = durationpb.New(time.Duration(t)) }
func (t TTL) create(request *pb.DeferredsCreateRequest) {
	request.Ttl = durationpb.New(time.Duration(t))
}
func (r RequestID) put(request *pb.StatePutRequest)         { request.RequestId = string(r) }
func (r RequestID) trigger(req *pb.SchedulesTriggerRequest) { req.RequestId = string(r) }

// Get is one entry, [ErrNotFound] if there is none. It may be some seconds old; see GetStrong.
func (s *State) Get(ctx context.Context, key string) (Entry, error) {
	return s.get(ctx, key, pb.Consistency_CONSISTENCY_CACHED)
}

// GetStrong is Get that sees every write acknowledged before.
func (s *State) GetStrong(ctx context.Context, key string) (Entry, error) {
	return s.get(ctx, key, pb.Consistency_CONSISTENCY_STRONG)
}

func (s *State) get(ctx context.Context, key string, consistency pb.Consistency) (Entry, error) {
	answer, err := call(ctx, s.connection, s.stub.Get, &pb.StateGetRequest{Key: key, Consistency: consistency})
	return entryOf(answer.GetEntry()), err
}

// Put writes one entry.
func (s *State) Put(ctx context.Context, key string, value any, options ...PutOption) (Entry, error) {
	data, err := encode(value)
	if err != nil {
		return Entry{}, fmt.Errorf("baton: %s: %w", key, err)
	}
	request := &pb.StatePutRequest{Key: key, Value: data, RequestId: rand.Text()}
	for _, option := range options {
		option.put(request)
	}
	return s.put(ctx, request)
}

func (s *State) put(ctx context.Context, request *pb.StatePutRequest) (Entry, error) {
	answer, err := call(ctx, s.connection, s.stub.Put, request)
	return entryOf(answer.GetEntry()), err
}

// Modify replaces the value of a key by what `change` makes of it, atomically: no change of another writer is lost.
// `change` gets the value and whether there is one, and is called again for each writer that was faster; its error
// ends the attempt with nothing changed. T is []byte, or anything that JSON can say.
func Modify[T any](
	ctx context.Context, s *State, key string, change func(value T, exists bool) (T, error), options ...PutOption,
) (T, error) {
	pauses := newWaits(10*time.Millisecond, 250*time.Millisecond)
	for range modifyRounds {
		value, err := modifyOnce(ctx, s, key, change, options)
		if !errors.Is(err, ErrConflict) {
			return value, err
		}
		if !sleep(ctx, pauses.next()) {
			return value, err
		}
	}
	return *new(T), &Error{Kind: ErrConflict, Reason: ErrConflict.name,
		Message: fmt.Sprintf("%s: %d times another writer was faster", key, modifyRounds)}
}

func modifyOnce[T any](
	ctx context.Context, s *State, key string, change func(T, bool) (T, error), options []PutOption,
) (T, error) {
	before, err := s.GetStrong(ctx, key)
	exists := err == nil
	if err != nil && !errors.Is(err, ErrNotFound) {
		return *new(T), err
	}
	value, err := decode[T](before.Value)
	if err != nil {
		return value, fmt.Errorf("baton: %s: %w", key, err)
	}
	if value, err = change(value, exists); err != nil {
		return value, err
	}
	_, err = s.Put(ctx, key, value, append(options[:len(options):len(options)], IfVersion(before.Version))...)
	return value, err
}

// Delete deletes one entry and tells whether there was one.
func (s *State) Delete(ctx context.Context, key string, options ...DeleteOption) (bool, error) {
	request := &pb.StateDeleteRequest{Key: key}
	for _, option := range options {
		option.delete(request)
	}
	answer, err := callOnce(ctx, s.connection, s.stub.Delete, request)
	return answer.GetDeleted(), err
}

// Has tells whether there is an entry.
func (s *State) Has(ctx context.Context, key string) (bool, error) {
	answer, err := call(ctx, s.connection, s.stub.Has, &pb.StateHasRequest{Key: key})
	return answer.GetExists(), err
}

// List is the entries whose keys begin with a prefix, by key.
func (s *State) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return paged(func(token string) ([]Entry, string, error) {
		answer, err := call(ctx, s.connection, s.stub.List, &pb.StateListRequest{Prefix: prefix, PageToken: token})
		entries := make([]Entry, 0, len(answer.GetEntries()))
		for _, entry := range answer.GetEntries() {
			entries = append(entries, entryOf(entry))
		}
		return entries, answer.GetNextPageToken(), err
	})
}

// Size is how many entries there are whose keys begin with a prefix.
func (s *State) Size(ctx context.Context, prefix string) (uint64, error) {
	answer, err := call(ctx, s.connection, s.stub.Size, &pb.StateSizeRequest{Prefix: prefix})
	return answer.GetSize(), err
}

// Clear deletes all entries whose keys begin with a prefix, except owned keys, and tells how many.
func (s *State) Clear(ctx context.Context, prefix string) (uint64, error) {
	answer, err := callOnce(ctx, s.connection, s.stub.Clear, &pb.StateClearRequest{Prefix: prefix})
	return answer.GetDeleted(), err
}

// Watch gives the changes from now on of the entries whose keys begin with a prefix, deletions included; a change may
// be told twice. It returns when the watch is in place: to keep a full copy, Watch first, then List, and ignore
// versions not above the one you hold. Range over it once; it lives until then or until the context ends.
//
// A broken stream is opened again after the last version told. Before any is known that would lose changes silently,
// so it ends with [ErrUnavailable], and after a week away with [ErrOutOfRange]: begin again.
func (s *State) Watch(ctx context.Context, prefix string) (iter.Seq2[Change, error], error) {
	return s.watch(ctx, prefix, nil)
}

// WatchAfter is Watch that begins with the changes after a version.
func (s *State) WatchAfter(ctx context.Context, prefix string, version uint64) (iter.Seq2[Change, error], error) {
	return s.watch(ctx, prefix, &version)
}

func (s *State) watch(ctx context.Context, prefix string, after *uint64) (iter.Seq2[Change, error], error) {
	request := &pb.StateWatchRequest{Prefix: prefix, AfterVersion: after}
	messages, err := inPlace(ctx, s.connection, s.stub.Watch, request)
	if err != nil {
		return nil, err
	}
	return func(yield func(Change, error) bool) {
		for pauses := newWaits(100*time.Millisecond, 2*time.Second); ; {
			for message, err := range messages {
				if err != nil {
					if after == nil || !isAway(err) {
						yield(Change{}, err)
						return
					}
					break
				}
				pauses = newWaits(100*time.Millisecond, 2*time.Second)
				change := changeOf(message)
				if after == nil || *after < change.Version {
					after = &change.Version
				}
				if !yield(change, nil) {
					return
				}
			}
			if !sleep(ctx, pauses.next()) {
				yield(Change{}, fmt.Errorf("baton: watch given up: %w", cmp.Or(context.Cause(ctx), context.DeadlineExceeded)))
				return
			}
			request := &pb.StateWatchRequest{Prefix: prefix, AfterVersion: after}
			messages = stream(ctx, s.connection, s.stub.Watch, request)
		}
	}, nil
}

func changeOf(message *pb.StateWatchResponse) Change {
	if deleted := message.GetDeleted(); deleted != nil {
		return Change{entryOf(deleted), true}
	}
	return Change{entryOf(message.GetPut()), false}
}

func entryOf(message *pb.Entry) Entry {
	entry := Entry{
		Key: message.GetKey(), Value: message.GetValue(), Version: message.GetVersion(),
		UpdatedAt: message.GetUpdatedAt().AsTime(),
	}
	if message.GetExpiresAt() != nil {
		entry.ExpiresAt = message.GetExpiresAt().AsTime()
	}
	return entry
}
