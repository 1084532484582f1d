/**
 * Reads `google.rpc.Status` out of trailing metadata.
 *
 * Bytes that cannot be read give empty details: an error about an error helps nobody.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import type { Metadata } from "@grpc/grpc-js";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
  StatusSchema,
} from "./gen/google/rpc/details_pb.js";

/** One wrong field of a request. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

/** What the sidecar said beyond code and message. */
export interface StatusDetails {
  readonly reason?: string;
  readonly retryable?: boolean;
  readonly retryAfterMs?: number;
  readonly violations?: readonly Violation[];
}

/** The details found in trailing metadata; empty if there are none or they are damaged. */
export function statusDetails(metadata: Metadata | undefined): StatusDetails {
  const packed = metadata?.get("grpc-status-details-bin")[0];
  if (!(packed instanceof Uint8Array)) return {};
  try {
    return parsed(packed);
  } catch {
    return {};
  }
}

function parsed(packed: Uint8Array): StatusDetails {
  const found: { -readonly [K in keyof StatusDetails]: StatusDetails[K] } = {};
  for (const detail of fromBinary(StatusSchema, packed).details) {
    const info = anyUnpack(detail, ErrorInfoSchema);
    if (info) {
      found.reason = info.reason;
      if (info.metadata.retryable) found.retryable = info.metadata.retryable === "true";
    }
    const delay = anyUnpack(detail, RetryInfoSchema)?.retryDelay;
    if (delay) found.retryAfterMs = durationMs(delay);
    const bad = anyUnpack(detail, BadRequestSchema);
    if (bad) {
      found.violations = bad.fieldViolations.map(({ field, description }) => ({
        field,
        description,
      }));
    }
  }
  return found;
}
