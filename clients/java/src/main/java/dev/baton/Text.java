package dev.baton;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetEncoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/** Texts within the limits of the contract, which are in bytes of UTF-8. */
final class Text {
  /** Of the message of an error. */
  static final int MESSAGE_MAX = 4096;

  private Text() {}

  /** The longest beginning of the text that fits; never a part of a character. */
  static String cut(String text, int bytesMax) {
    CharsetEncoder encoder =
        StandardCharsets.UTF_8
            .newEncoder()
            .onMalformedInput(CodingErrorAction.REPLACE)
            .onUnmappableCharacter(CodingErrorAction.REPLACE);
    ByteBuffer bytes = ByteBuffer.allocate(bytesMax);
    encoder.encode(CharBuffer.wrap(text), bytes, true);
    return StandardCharsets.UTF_8.decode(bytes.flip()).toString();
  }
}
