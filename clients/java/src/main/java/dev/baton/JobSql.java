package dev.baton;

import dev.baton.v1.JobConflict;
import dev.baton.v1.JobPriority;
import dev.baton.v1.JobSpec;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Calls baton.enqueue with the arguments that a job sets; the function has all the defaults. */
final class JobSql {
  private final List<String> arguments = new ArrayList<>();
  private final List<String> values = new ArrayList<>();

  private JobSql() {}

  /** Enqueues the job on this connection, in its transaction; the id of the job. */
  static long enqueue(java.sql.Connection connection, String cluster, JobSpec spec)
      throws SQLException {
    JobSql sql = new JobSql();
    sql.add("cluster", "text", cluster);
    sql.add("name", "text", spec.getName());
    sql.add("payload", "jsonb", spec.getPayload().isEmpty() ? "null" : payload(spec));
    sql.addOptions(spec);
    sql.addTimes(spec);
    sql.addUnique(spec);
    String call = "SELECT baton.enqueue(" + String.join(", ", sql.arguments) + ")";
    try (PreparedStatement statement = connection.prepareStatement(call)) {
      for (int i = 0; i < sql.values.size(); i++) {
        statement.setString(i + 1, sql.values.get(i));
      }
      try (ResultSet result = statement.executeQuery()) {
        result.next();
        return result.getLong(1);
      }
    }
  }

  private void addOptions(JobSpec spec) {
    addGiven("content_type", "text", spec.getContentType());
    addGiven("queue", "text", spec.getQueue());
    if (spec.getPriority() != JobPriority.JOB_PRIORITY_UNSPECIFIED) {
      add("priority", "text", word(spec.getPriority(), "JOB_PRIORITY_"));
    }
    addGiven("key", "text", spec.getKey());
    if (spec.getRetry().hasInitial() || spec.getRetry().hasMax()) {
      throw new IllegalArgumentException("retry: baton.enqueue takes only the number of attempts");
    }
    if (spec.getRetry().getAttempts() != 0) {
      add("attempts", "int", Integer.toUnsignedString(spec.getRetry().getAttempts()));
    }
    if (spec.getLabelsCount() > 0) {
      add("labels", "jsonb", Json.toBytes(spec.getLabelsMap()).toStringUtf8());
    }
    addGiven("batch", "text", spec.getBatch());
  }

  private void addTimes(JobSpec spec) {
    if (spec.hasDueAt()) {
      add("due_at", "timestamptz", Times.instant(spec.getDueAt()).toString());
    }
    if (spec.hasDelay()) {
      add("delay", "interval", Times.duration(spec.getDelay()).toString());
    }
    if (spec.hasExpiresAt()) {
      add("expires_at", "timestamptz", Times.instant(spec.getExpiresAt()).toString());
    }
    if (spec.hasTimeout()) {
      add("timeout", "interval", Times.duration(spec.getTimeout()).toString());
    }
  }

  private void addUnique(JobSpec spec) {
    if (!spec.hasUnique()) {
      return;
    }
    add("unique_key", "text", spec.getUnique().getKey());
    if (spec.getUnique().hasWindow()) {
      add("unique_window", "interval", Times.duration(spec.getUnique().getWindow()).toString());
    }
    if (spec.getUnique().getOnConflict() != JobConflict.JOB_CONFLICT_UNSPECIFIED) {
      add("on_conflict", "text", word(spec.getUnique().getOnConflict(), "JOB_CONFLICT_"));
    }
  }

  private void addGiven(String name, String type, String value) {
    if (!value.isEmpty()) {
      add(name, type, value);
    }
  }

  private void add(String name, String type, String value) {
    arguments.add(name + " => ?::" + type);
    values.add(value);
  }

  private static String word(Enum<?> value, String prefix) {
    return value.name().substring(prefix.length()).toLowerCase(Locale.ROOT);
  }

  private static String payload(JobSpec spec) {
    if (!spec.getPayload().isValidUtf8()) {
      throw new IllegalArgumentException("payload: baton.enqueue takes JSON only");
    }
    return spec.getPayload().toStringUtf8();
  }
}
