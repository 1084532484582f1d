/** Joins the generated messages to @grpc/grpc-js: how methods are named and their messages written. */
import {
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

type Shape<D extends DescMethod, End extends "input" | "output"> = MessageShape<D[End]>;

/** One method as gRPC wants to know it. */
export function definitionOf<D extends DescMethod>(
  method: D,
): MethodDefinition<Shape<D, "input">, Shape<D, "output">> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === "bidi_streaming",
    responseStream: method.methodKind !== "unary",
    requestSerialize: writer<D["input"]>(method.input),
    requestDeserialize: reader<D["input"]>(method.input),
    responseSerialize: writer<D["output"]>(method.output),
    responseDeserialize: reader<D["output"]>(method.output),
    originalName: method.localName,
  };
}

/** A whole service, for a server. */
export function serviceOf(service: DescService): ServiceDefinition {
  return Object.fromEntries(
    service.methods.map((method) => [method.localName, definitionOf(method)]),
  );
}

function writer<M extends DescMessage>(schema: M) {
  return (message: MessageShape<M>): Buffer => Buffer.from(toBinary(schema, message));
}

function reader<M extends DescMessage>(schema: M) {
  // A plain view: bytes fields would otherwise come out as Buffers, whose `slice` does not copy.
  return (bytes: Buffer): MessageShape<M> =>
    fromBinary(schema, new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
}
