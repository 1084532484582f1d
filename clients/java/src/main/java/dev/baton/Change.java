package dev.baton;

import dev.baton.v1.StateWatchResponse;

/**
 * One change told by {@link State#watch}.
 *
 * @param entry as written; of a deleted one only key, version and time are known
 * @param deleted whether it is gone
 */
public record Change(Entry entry, boolean deleted) {
  static Change of(StateWatchResponse message) {
    return message.hasDeleted()
        ? new Change(Entry.of(message.getDeleted()), true)
        : new Change(Entry.of(message.getPut()), false);
  }
}
