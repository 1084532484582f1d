package baton_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	baton "github.com/baton-sidecar/baton/clients/go"
)

// recording is a transaction that notes its query; it has the method of pgx and, as another type, that of database/sql.
type recording struct {
	query     string
	arguments []any
	err       error
}

type row struct{ err error }

func (r row) Scan(into ...any) error {
	*into[0].(*int64) = 42
	return r.err
}

func (r *recording) QueryRow(_ context.Context, query string, arguments ...any) row {
	r.query, r.arguments = query, arguments
	return row{r.err}
}

type recordingSQL struct{ recording }

func (r *recordingSQL) QueryRowContext(ctx context.Context, query string, arguments ...any) row {
	return r.QueryRow(ctx, query, arguments...)
}

var _ = baton.SQLTx[*sql.Row](&sql.Tx{}) // what database/sql has fits

func sqlClient(t *testing.T, cluster string) *baton.Sidecar {
	t.Helper()
	client := must[*baton.Sidecar](t)(baton.Connect(baton.Config{Sidecar: "127.0.0.1:1", Cluster: cluster}))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A job in the user's own transaction is one call of baton.enqueue, with the arguments that are set.
func TestEnqueueInATransaction(t *testing.T) {
	jobs, at := sqlClient(t, "orders").Jobs, time.Date(2027, 1, 2, 3, 4, 5, 6000, time.FixedZone("x", 3600))
	plain := &recording{}
	if id, err := jobs.Enqueue(t.Context(), baton.PgxTx(plain), "send-mail", map[string]string{"to": "a"}); err != nil || id != 42 {
		t.Fatal(id, err)
	}
	if plain.query != `SELECT "baton".enqueue($1::text, $2::text, $3::text::jsonb)` ||
		!slices.Equal(plain.arguments, []any{"orders", "send-mail", `{"to":"a"}`}) {
		t.Errorf("%s %v", plain.query, plain.arguments)
	}
	full := &recordingSQL{}
	_, err := jobs.Enqueue(t.Context(), baton.SQLTx(full), "send-mail", nil, baton.JobOptions{
		Queue: "mail", Priority: baton.PriorityHigh, DueAt: at, ExpiresAt: at, Key: "7",
		Unique: &baton.JobUnique{Key: "u", Window: time.Second, OnConflict: baton.ConflictReplace},
		Retry:  baton.RetryPolicy{Attempts: 5}, Timeout: 1500 * time.Millisecond, Labels: map[string]string{"a": "b"},
		Batch: "b", ContentType: "application/json",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `SELECT "baton".enqueue($1::text, $2::text, $3::text::jsonb, queue => $4::text, priority => $5::text, ` +
		`due_at => $6::text::timestamptz, expires_at => $7::text::timestamptz, key => $8::text, unique_key => $9::text, ` +
		`unique_window => $10::text::interval, on_conflict => $11::text, attempts => $12::text::int, ` +
		`timeout => $13::text::interval, labels => $14::text::jsonb, batch => $15::text, content_type => $16::text)`
	arguments := []any{
		"orders", "send-mail", "null", "mail", "high", "2027-01-02T02:04:05.000006Z", "2027-01-02T02:04:05.000006Z", "7", "u",
		"1000000 microseconds", "replace", "5", "1500000 microseconds", `{"a":"b"}`, "b", "application/json",
	}
	if full.query != want || !slices.Equal(full.arguments, arguments) {
		t.Errorf("got  %s %v\nwant %s %v", full.query, full.arguments, want, arguments)
	}
	delayed := &recording{}
	if _, err := jobs.Enqueue(t.Context(), baton.PgxTx(delayed), "x", 1, baton.JobOptions{Delay: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if len(delayed.arguments) != 4 || delayed.arguments[3] != "60000000 microseconds" {
		t.Errorf("arguments %v", delayed.arguments)
	}
}

// What SQL cannot carry is refused before the transaction is touched; its errors are passed on.
func TestEnqueueRefusals(t *testing.T) {
	jobs, tx := sqlClient(t, "orders").Jobs, &recording{}
	for name, test := range map[string]struct {
		jobs    *baton.Jobs
		payload any
		options baton.JobOptions
	}{
		"no cluster":     {sqlClient(t, "").Jobs, nil, baton.JobOptions{}},
		"not JSON":       {jobs, []byte("\xff"), baton.JobOptions{}},
		"no JSON of it":  {jobs, func() {}, baton.JobOptions{}},
		"waits of retry": {jobs, nil, baton.JobOptions{Retry: baton.RetryPolicy{Max: time.Second}}},
		"due twice":      {jobs, nil, baton.JobOptions{DueAt: time.Now(), Delay: time.Second}},
	} {
		if _, err := test.jobs.Enqueue(t.Context(), baton.PgxTx(tx), "x", test.payload, test.options); err == nil || tx.query != "" {
			t.Errorf("%s: %v, %q", name, err, tx.query)
		}
	}
	broken := errors.New("the transaction is aborted")
	if _, err := jobs.Enqueue(t.Context(), baton.PgxTx(&recording{err: broken}), "x", 1); !errors.Is(err, broken) {
		t.Error(err)
	}
}
