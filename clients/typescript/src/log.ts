/** Where this package tells what happens; anything with these three methods will do, `console` too. */
export interface Log {
  info(message: string): void;
  warn(message: string): void;
  error(message: string, error: unknown): void;
}

/** Warnings and errors to stderr, nothing else. */
export const quietLog: Log = {
  info: () => undefined,
  warn: (message) => {
    console.warn(`baton: ${message}`);
  },
  error: (message, error) => {
    console.error(`baton: ${message}:`, error);
  },
};
