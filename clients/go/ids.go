package baton

import (
	"context"
	"errors"
	"time"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const (
	idBlockSize = 100
	// An id tells when it was made, and an old block would lie about it.
	idBlockAge = time.Second
)

// ids hands out cluster-wide ids in rising order, from a block that is fetched ahead.
type ids struct {
	connection *connection
	stub       pb.IdsClient
	turn       chan struct{} // a lock that can be waited for no longer than a context lasts
	block      []uint64
	fetchedAt  time.Duration
}

func newIDs(c *connection) *ids {
	return &ids{connection: c, stub: pb.NewIdsClient(c.channel), turn: make(chan struct{}, 1)}
}

func (i *ids) next(ctx context.Context) (uint64, error) {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if len(i.block) == 0 || boottime()-i.fetchedAt > idBlockAge {
		if err := i.fetch(ctx); err != nil {
			return 0, err
		}
	}
	id := i.block[0]
	i.block = i.block[1:]
	return id, nil
}

func (i *ids) fetch(ctx context.Context) error {
	askedAt := boottime()
	answer, err := call(ctx, i.connection, i.stub.Generate, &pb.IdsGenerateRequest{Count: idBlockSize})
	if err != nil {
		return err
	}
	if len(answer.GetIds()) == 0 {
		return errors.New("baton: the sidecar gave no ids")
	}
	i.block, i.fetchedAt = answer.GetIds(), askedAt
	return nil
}
