package baton

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	errClusterUnknown = errors.New(
		"baton: the name of the cluster is not known: set Config.Cluster or BATON_CLUSTER, or attach first")
	errRetryWaits = errors.New("baton: Retry.Initial and Retry.Max cannot be set in a transaction: set them for the queue")
)

type (
	// Tx runs a query in the caller's own transaction; [PgxTx] and [SQLTx] make one.
	Tx func(ctx context.Context, query string, arguments ...any) Row
	// Row is the one row that a query gives, as *sql.Row and pgx.Row are.
	Row interface{ Scan(into ...any) error }
)

// PgxTx makes a Tx of a pgx.Tx, or of a connection or pool of pgx.
func PgxTx[R Row](tx interface {
	QueryRow(ctx context.Context, query string, arguments ...any) R
}) Tx {
	return func(ctx context.Context, query string, arguments ...any) Row {
		return tx.QueryRow(ctx, query, arguments...)
	}
}

// SQLTx makes a Tx of a *sql.Tx, or of a *sql.Conn or *sql.DB.
func SQLTx[R Row](tx interface {
	QueryRowContext(ctx context.Context, query string, arguments ...any) R
}) Tx {
	return func(ctx context.Context, query string, arguments ...any) Row {
		return tx.QueryRowContext(ctx, query, arguments...)
	}
}

// Enqueue submits a job in the caller's own transaction: it exists if and only if that commits. It calls baton.enqueue
// in the app's Postgres, not the sidecar. The payload must be JSON, or what JSON can say. It gives the id of the job.
//
//	id, err := app.Jobs.Enqueue(ctx, baton.PgxTx(tx), "send-mail", mail)
func (j *Jobs) Enqueue(ctx context.Context, tx Tx, name string, payload any, options ...JobOptions) (uint64, error) {
	given := first(options)
	switch {
	case j.cluster() == "":
		return 0, errClusterUnknown
	case given.Retry.Initial != 0 || given.Retry.Max != 0:
		return 0, errRetryWaits
	case !given.DueAt.IsZero() && given.Delay != 0:
		return 0, errDueTwice
	}
	data, err := encode(payload)
	if err == nil && !json.Valid(data) {
		err = errors.New("in a transaction the payload must be JSON")
	}
	if err != nil {
		return 0, fmt.Errorf("baton: job %s: %w", name, err)
	}
	query := newEnqueue(j.schema, j.cluster(), name, data)
	if err := query.options(j.withDefaults(name, given)); err != nil {
		return 0, fmt.Errorf("baton: job %s: %w", name, err)
	}
	var id int64
	if err := tx(ctx, query.text.String()+")", query.arguments...).Scan(&id); err != nil {
		return 0, fmt.Errorf("baton: job %s: %w", name, err)
	}
	return uint64(id), nil
}

// enqueue is a call of the SQL function. Every argument is sent as text and cast there, which all drivers can do.
type enqueue struct {
	text      strings.Builder
	arguments []any
}

func newEnqueue(schema, cluster, name string, payload []byte) *enqueue {
	query := &enqueue{arguments: []any{cluster, name, string(payload)}}
	fmt.Fprintf(&query.text, `SELECT %s.enqueue($1::text, $2::text, $3::text::jsonb`, quoted(schema))
	return query
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// options adds those that are set, by name.
func (e *enqueue) options(o JobOptions) error {
	e.add("queue", "text", o.Queue)
	e.add("priority", "text", lowered(o.Priority.String(), "JOB_PRIORITY_"))
	e.add("due_at", "text::timestamptz", instant(o.DueAt))
	e.add("delay", "text::interval", interval(o.Delay))
	e.add("expires_at", "text::timestamptz", instant(o.ExpiresAt))
	e.add("key", "text", o.Key)
	if o.Unique != nil {
		e.put("unique_key", "text", o.Unique.Key)
		e.add("unique_window", "text::interval", interval(o.Unique.Window))
		e.add("on_conflict", "text", lowered(o.Unique.OnConflict.String(), "JOB_CONFLICT_"))
	}
	if o.Retry.Attempts != 0 {
		e.put("attempts", "text::int", fmt.Sprint(o.Retry.Attempts))
	}
	e.add("timeout", "text::interval", interval(o.Timeout))
	if len(o.Labels) > 0 {
		labels, err := json.Marshal(o.Labels)
		if err != nil {
			return err
		}
		e.put("labels", "text::jsonb", string(labels))
	}
	e.add("batch", "text", o.Batch)
	e.add("content_type", "text", o.ContentType)
	return nil
}

// add adds a named argument that is set.
func (e *enqueue) add(name, cast, value string) {
	if value != "" {
		e.put(name, cast, value)
	}
}

func (e *enqueue) put(name, cast, value string) {
	e.arguments = append(e.arguments, value)
	fmt.Fprintf(&e.text, ", %s => $%d::%s", name, len(e.arguments), cast)
}

// lowered is the name of an enum's value in SQL; of the unspecified one it is empty.
func lowered(name, prefix string) string {
	if short := strings.TrimPrefix(name, prefix); short != "UNSPECIFIED" {
		return strings.ToLower(short)
	}
	return ""
}

func instant(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func interval(length time.Duration) string {
	if length == 0 {
		return ""
	}
	return fmt.Sprintf("%d microseconds", length.Microseconds())
}
