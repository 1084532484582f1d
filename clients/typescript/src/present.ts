/** Messages within messages are optional in protobuf; those that the contract always sends are not here. */
import { BatonError } from "./errors.js";

/** The part of an answer that is always there. */
export function present<T>(part: T | undefined): T {
  if (part === undefined) throw new BatonError("the sidecar's answer is not complete");
  return part;
}
