package dev.baton;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.List;

/**
 * A token kept in a file, re-read when the file changes.
 *
 * <p>A file that cannot be read, or holds no line of printable ASCII, keeps its last token; an
 * empty token opens nothing. For a minute after a change the token before it is accepted too,
 * because the two sides do not read the file at the same instant and a run refused as
 * UNAUTHENTICATED has failed for good.
 */
final class TokenFile {
  static final long PREVIOUS_ACCEPTED_NANOS = 60_000_000_000L;
  private static final System.Logger LOG = System.getLogger("baton");

  private final Path path;
  private final Clock clock;
  private List<Object> seen;
  private byte[] token = {};
  private byte[] previous = {};
  private long changedAt;

  TokenFile(Path path, Clock clock) {
    this.path = path;
    this.clock = clock;
    try {
      reread();
    } catch (IOException error) {
      throw new UncheckedIOException("token file " + path + " cannot be read", error);
    }
    if (token.length == 0) {
      String problem = " is empty, or no line of printable ASCII";
      throw new IllegalArgumentException("token file " + path + problem);
    }
  }

  /** The file given; null: no token is used. */
  static TokenFile of(Path path) {
    return path == null ? null : new TokenFile(path, Clock.SYSTEM);
  }

  /** The token as the file has it now. */
  synchronized String current() {
    refresh();
    return new String(token, StandardCharsets.UTF_8);
  }

  /** Whether this is the token; takes the same time however wrong it is. */
  synchronized boolean accepts(String given) {
    refresh();
    byte[] bytes = given == null ? new byte[0] : given.getBytes(StandardCharsets.UTF_8);
    boolean matches = MessageDigest.isEqual(bytes, token);
    if (previous.length > 0 && clock.latest() - changedAt < PREVIOUS_ACCEPTED_NANOS) {
      matches |= MessageDigest.isEqual(bytes, previous);
    }
    return matches;
  }

  private void refresh() {
    try {
      reread();
    } catch (IOException error) {
      LOG.log(Level.WARNING, "token file {0} cannot be read: {1}", path, error.getMessage());
    }
  }

  private void reread() throws IOException {
    BasicFileAttributes file = Files.readAttributes(path, BasicFileAttributes.class);
    List<Object> found =
        Arrays.asList(file.lastModifiedTime(), file.size(), file.fileKey()); // the key may be null
    if (found.equals(seen)) {
      return;
    }
    byte[] content = strippedContent();
    seen = found;
    if (isSendable(content) && !Arrays.equals(content, token)) {
      previous = token;
      token = content;
      changedAt = clock.earliest();
    }
  }

  /** Whether gRPC can carry a token. */
  private static boolean isSendable(byte[] token) {
    boolean sendable = token.length > 0;
    for (byte character : token) {
      sendable &= character >= ' ' && character <= '~';
    }
    return sendable;
  }

  private byte[] strippedContent() throws IOException {
    // Not Files.readAllBytes: it fails in a thread that was interrupted.
    try (FileInputStream file = new FileInputStream(path.toFile())) {
      String text = new String(file.readAllBytes(), StandardCharsets.UTF_8);
      return text.strip().getBytes(StandardCharsets.UTF_8);
    }
  }
}
