/**
 * How values travel: bytes as they are, everything else as JSON.
 *
 * A stored step must come back as the kind it was. JSON never begins with a NUL byte, so that byte marks
 * raw bytes; nothing at all stands for `undefined`.
 */
import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import { SchemaDecodeFailed } from "./errors.js";

const RAW = 0;
const NOTHING = new Uint8Array();
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Turns values of one type into bytes and back; `decode` throws for what does not fit. */
export interface Codec<V> {
  encode(value: V): Uint8Array;
  decode(bytes: Uint8Array): V;
}

/** A span of time as sent: in whole milliseconds, as the message has no room for every fraction. */
export function durationOf(ms: number): Duration {
  return durationFromMs(Math.ceil(ms));
}

/** The value as sent: bytes unchanged, anything else as JSON. */
export function toBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  const text = JSON.stringify(value) as string | undefined; // its type leaves out what it really does
  if (text === undefined) throw new TypeError(`${typeof value} cannot be sent as JSON`);
  return encoder.encode(text);
}

/** The JSON in `bytes`; `undefined` if they are empty, `SchemaDecodeFailed` if they are not JSON. */
export function fromJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(decoder.decode(bytes)) as unknown;
  } catch (error) {
    throw new SchemaDecodeFailed("the bytes are not JSON", { cause: error });
  }
}

/** JSON without a check: whoever names the type vouches for what is stored. */
export function jsonCodec<V>(): Codec<V> {
  return { encode: toBytes, decode: (bytes) => fromJson(bytes) as V };
}

/** A step's result as it is stored. */
export function toStored(value: unknown): Uint8Array {
  if (value === undefined) return NOTHING;
  if (!(value instanceof Uint8Array)) return toBytes(value);
  const stored = new Uint8Array(value.length + 1); // its first byte is RAW
  stored.set(value, 1);
  return stored;
}

/** A step's result as it was, but for what JSON does to it (a Date becomes a string). */
export function fromStored(stored: Uint8Array): unknown {
  return stored[0] === RAW ? stored.slice(1) : fromJson(stored);
}
