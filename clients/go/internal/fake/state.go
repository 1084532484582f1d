package fake

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

type state struct {
	pb.UnimplementedStateServer
	*Sidecar
}

func (s *Sidecar) write(key string, value []byte, ttl *durationpb.Duration) *pb.Entry {
	s.version++
	entry := &pb.Entry{Key: key, Value: value, Version: s.version, UpdatedAt: timestamppb.Now()}
	if ttl != nil {
		entry.ExpiresAt = timestamppb.New(time.Now().Add(ttl.AsDuration()))
	}
	s.entries[key] = entry
	s.changes = append(s.changes, &pb.StateWatchResponse{Change: &pb.StateWatchResponse_Put{Put: entry}})
	s.tell()
	return entry
}

func (s *Sidecar) remove(key string) bool {
	if s.entries[key] == nil {
		return false
	}
	delete(s.entries, key)
	s.version++
	gone := &pb.Entry{Key: key, Version: s.version, UpdatedAt: timestamppb.Now()}
	s.changes = append(s.changes, &pb.StateWatchResponse{Change: &pb.StateWatchResponse_Deleted{Deleted: gone}})
	s.tell()
	return true
}

func (s *Sidecar) keys(prefix string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for key := range maps.Keys(s.entries) {
			if strings.HasPrefix(key, prefix) && !yield(key) {
				return
			}
		}
	})
}

func (s *state) Get(_ context.Context, r *pb.StateGetRequest) (*pb.StateGetResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[r.Key] == nil {
		return nil, missing
	}
	return &pb.StateGetResponse{Entry: s.entries[r.Key]}, nil
}

func (s *state) Put(_ context.Context, r *pb.StatePutRequest) (*pb.StatePutResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Run != nil {
		if err := s.isLive(r.Run); err != nil {
			return nil, err
		}
	}
	if r.ExpectedVersion != nil && s.entries[r.Key].GetVersion() != *r.ExpectedVersion {
		return nil, status.Error(codes.Aborted, "another version")
	}
	if r.RequestId == "" {
		return nil, status.Error(codes.InvalidArgument, "this client always sends a request id")
	}
	return &pb.StatePutResponse{Entry: s.write(r.Key, r.Value, r.Ttl)}, nil
}

func (s *state) Delete(_ context.Context, r *pb.StateDeleteRequest) (*pb.StateDeleteResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ExpectedVersion != nil && s.entries[r.Key].GetVersion() != *r.ExpectedVersion {
		return nil, status.Error(codes.Aborted, "another version")
	}
	return &pb.StateDeleteResponse{Deleted: s.remove(r.Key)}, nil
}

func (s *state) Has(_ context.Context, r *pb.StateHasRequest) (*pb.StateHasResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &pb.StateHasResponse{Exists: s.entries[r.Key] != nil}, nil
}

func (s *state) List(_ context.Context, r *pb.StateListRequest) (*pb.StateListResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, next := page(s.keys(r.Prefix), r.PageToken)
	answer := &pb.StateListResponse{NextPageToken: next}
	for _, key := range keys {
		answer.Entries = append(answer.Entries, s.entries[key])
	}
	return answer, nil
}

func (s *state) Size(_ context.Context, r *pb.StateSizeRequest) (*pb.StateSizeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &pb.StateSizeResponse{Size: uint64(len(s.keys(r.Prefix)))}, nil
}

func (s *state) Clear(_ context.Context, r *pb.StateClearRequest) (*pb.StateClearResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.keys(r.Prefix)
	for _, key := range keys {
		s.remove(key)
	}
	return &pb.StateClearResponse{Deleted: uint64(len(keys))}, nil
}

// Watch tells two changes, then breaks the stream: a client must go on by itself.
func (s *state) Watch(r *pb.StateWatchRequest, stream grpc.ServerStreamingServer[pb.StateWatchResponse]) error {
	s.mu.Lock()
	seen := len(s.changes)
	if r.AfterVersion != nil {
		seen = int(*r.AfterVersion) // versions count changes
	}
	s.mu.Unlock()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for told := 0; told < 2; {
		s.mu.Lock()
		changes, changed := slices.Clone(s.changes[seen:]), s.changed
		s.mu.Unlock()
		for _, change := range changes[:min(len(changes), 2-told)] {
			if err := stream.Send(change); err != nil {
				return err
			}
			seen++
			told++
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
	return status.Error(codes.Unavailable, "the fake breaks its streams")
}
