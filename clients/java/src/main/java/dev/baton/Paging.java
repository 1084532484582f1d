package dev.baton;

import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Stream;

/** Lists come in pages, asked for one after the other as they are needed; streams in messages. */
final class Paging {
  private Paging() {}

  /** Everything on all pages; `fetch` gets the page token, at first an empty one. */
  static <P, T> Stream<T> all(
      Function<String, P> fetch, Function<P, List<T>> items, Function<P, String> nextToken) {
    return Stream.iterate(
            fetch.apply(""),
            Objects::nonNull,
            page -> nextToken.apply(page).isEmpty() ? null : fetch.apply(nextToken.apply(page)))
        .flatMap(page -> items.apply(page).stream());
  }

  /** The same iteration with something made of each element. */
  static <S, T> Iterator<T> mapped(Iterator<S> elements, Function<S, T> made) {
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return elements.hasNext();
      }

      @Override
      public T next() {
        return made.apply(elements.next());
      }
    };
  }
}
