// Spans as the bytes that a collector gets (OTLP, protobuf). A span is written when it ends: no object of it waits for
// the export, which the garbage collector would have to move twice.

import type { Attributes, SpanOutcome, SpanStart } from '../../../engine/ports/telemetry.js';
import { ProtobufWriter, WIRE, widthOf } from './protobuf-writer.js';

/** The ids of a span. Null: random ones, which no other span has to know. */
export interface SpanIds {
  readonly traceId: string | null;
  readonly spanId: string | null;
}

/** Spans for the collector. */
export interface SpanRequest {
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** What all spans have in common. */
export interface SpanOrigin {
  /** The name of the instrumentation. */
  readonly scope: string;
  /** Attributes of the service. */
  readonly resource: Readonly<Record<string, unknown>>;
}

const INTERNAL = 1;
const SERVER = 2;
const UNSET = 0;
const ERROR = 2;
const SAMPLED = 0x1;
/** Whether the parent is of another process is known, and it is. */
const KNOWN = 0x100;
const REMOTE = 0x200;
const ERROR_TYPE = 'error.type';
/** Bytes of the length of a span: most have 128 or more. */
const SPAN_WIDTH = 2;
const SPAN_ID_BYTES = 8;
const TRACE_ID_BYTES = 16;
/** Numbers of fields in the messages of OTLP. */
const FIELD = {
  request: { resourceSpans: 1 },
  resourceSpans: { resource: 1, scopeSpans: 2 },
  resource: { attributes: 1, droppedAttributes: 2 },
  scopeSpans: { scope: 1, spans: 2 },
  scope: { name: 1 },
  span: {
    traceId: 1,
    spanId: 2,
    parentSpanId: 4,
    name: 5,
    kind: 6,
    start: 7,
    end: 8,
    attributes: 9,
    droppedAttributes: 10,
    droppedEvents: 12,
    links: 13,
    droppedLinks: 14,
    status: 15,
    flags: 16,
  },
  link: { traceId: 1, spanId: 2, droppedAttributes: 5, flags: 6 },
  status: { code: 3 },
  keyValue: { key: 1, value: 2 },
  anyValue: { string: 1, bool: 2, int: 3, double: 4 },
} as const;

/** The spans of the next request. */
export class SpanBatch {
  readonly #writer = new ProtobufWriter();
  readonly #resource: Uint8Array;
  readonly #scope: Uint8Array;
  #count = 0;

  constructor({ scope, resource }: SpanOrigin) {
    const writer = new ProtobufWriter();
    this.#resource = messageOf(writer, FIELD.resourceSpans.resource, () => {
      for (const [key, value] of Object.entries(resource)) {
        if (isValue(value)) writeAttribute(writer, FIELD.resource.attributes, key, value);
      }
      writeZero(writer, FIELD.resource.droppedAttributes);
    });
    this.#scope = messageOf(writer, FIELD.scopeSpans.scope, () => {
      writer.tag(FIELD.scope.name, WIRE.bytes);
      writer.text(scope);
    });
  }

  get count(): number {
    return this.#count;
  }

  /** Adds a span that is over. */
  add(start: SpanStart, end: SpanOutcome, ids: SpanIds): void {
    const writer = this.#writer;
    writer.tag(FIELD.scopeSpans.spans, WIRE.bytes);
    const begin = writer.begin(SPAN_WIDTH);
    writeSpan(writer, start, end, ids);
    writer.end(begin, SPAN_WIDTH);
    this.#count += 1;
  }

  /** The request with all spans. The batch is empty then. */
  take(): SpanRequest {
    const spans = this.#writer.bytes;
    const scopeSize = this.#scope.length + spans.length;
    const resourceSize = this.#resource.length + 1 + widthOf(scopeSize) + scopeSize;
    const request = new ProtobufWriter(1 + widthOf(resourceSize) + resourceSize);
    request.tag(FIELD.request.resourceSpans, WIRE.bytes);
    request.varint(resourceSize);
    request.copy(this.#resource);
    request.tag(FIELD.resourceSpans.scopeSpans, WIRE.bytes);
    request.varint(scopeSize);
    request.copy(this.#scope);
    request.copy(spans);
    const count = this.#count;
    this.clear();
    return { count, bytes: request.bytes };
  }

  clear(): void {
    this.#writer.clear();
    this.#count = 0;
  }
}

/** The order of the fields is that of the serializer of the SDK. */
function writeSpan(writer: ProtobufWriter, start: SpanStart, end: SpanOutcome, { traceId, spanId }: SpanIds): void {
  const { parent, link } = start;
  writeId(writer, FIELD.span.traceId, traceId, TRACE_ID_BYTES);
  writeId(writer, FIELD.span.spanId, spanId, SPAN_ID_BYTES);
  if (parent !== null) writeId(writer, FIELD.span.parentSpanId, parent.spanId, SPAN_ID_BYTES);
  writer.tag(FIELD.span.name, WIRE.bytes);
  writer.text(start.name);
  writer.tag(FIELD.span.kind, WIRE.varint);
  writer.varint(start.kind === 'server' ? SERVER : INTERNAL);
  writer.tag(FIELD.span.start, WIRE.fixed64);
  writer.time(start.startMs);
  writer.tag(FIELD.span.end, WIRE.fixed64);
  writer.time(end.endMs);
  const failed = end.error !== undefined && end.error !== null;
  writeAttributes(writer, start.attributes, end);
  writeZero(writer, FIELD.span.droppedAttributes);
  writeZero(writer, FIELD.span.droppedEvents);
  if (link !== undefined) writeLink(writer, link);
  writeZero(writer, FIELD.span.droppedLinks);
  writer.tag(FIELD.span.status, WIRE.bytes);
  const status = writer.begin();
  writer.tag(FIELD.status.code, WIRE.varint);
  writer.varint(failed ? ERROR : UNSET);
  writer.end(status);
  writer.tag(FIELD.span.flags, WIRE.fixed32);
  writer.fixed32(SAMPLED | KNOWN | (parent?.remote === true ? REMOTE : 0));
}

/** The state of the other trace is not part of it: it is text of the caller. */
function writeLink(writer: ProtobufWriter, { traceId, spanId, sampled, remote }: NonNullable<SpanStart['link']>): void {
  writer.tag(FIELD.span.links, WIRE.bytes);
  const begin = writer.begin();
  writeId(writer, FIELD.link.traceId, traceId, TRACE_ID_BYTES);
  writeId(writer, FIELD.link.spanId, spanId, SPAN_ID_BYTES);
  writeZero(writer, FIELD.link.droppedAttributes);
  writer.tag(FIELD.link.flags, WIRE.fixed32);
  writer.fixed32((sampled ? SAMPLED : 0) | KNOWN | (remote === true ? REMOTE : 0));
  writer.end(begin);
}

/** The attributes of the beginning and of the end. A later value of a name replaces the earlier one in its place. */
function writeAttributes(writer: ProtobufWriter, first: Attributes, { attributes: more, error }: SpanOutcome): void {
  const field = FIELD.span.attributes;
  const failure = error ?? undefined;
  for (const key in first) {
    const last = key === ERROR_TYPE && failure !== undefined ? failure : more?.[key];
    const value = last ?? first[key];
    if (value !== undefined) writeAttribute(writer, field, key, value);
  }
  for (const key in more) {
    const value = key === ERROR_TYPE && failure !== undefined ? failure : more[key];
    if (value !== undefined && first[key] === undefined) writeAttribute(writer, field, key, value);
  }
  if (failure === undefined || first[ERROR_TYPE] !== undefined || more?.[ERROR_TYPE] !== undefined) return;
  writeAttribute(writer, field, ERROR_TYPE, failure);
}

function writeAttribute(writer: ProtobufWriter, field: number, key: string, value: Attributes[string]): void {
  writer.tag(field, WIRE.bytes);
  const begin = writer.begin();
  writer.tag(FIELD.keyValue.key, WIRE.bytes);
  writer.text(key);
  writer.tag(FIELD.keyValue.value, WIRE.bytes);
  const inner = writer.begin();
  if (typeof value === 'string') {
    writer.tag(FIELD.anyValue.string, WIRE.bytes);
    writer.text(value);
  } else if (typeof value === 'boolean') {
    writer.tag(FIELD.anyValue.bool, WIRE.varint);
    writer.varint(value ? 1 : 0);
  } else if (Number.isSafeInteger(value)) {
    writer.tag(FIELD.anyValue.int, WIRE.varint);
    writer.int64(value);
  } else {
    writer.tag(FIELD.anyValue.double, WIRE.fixed64);
    writer.double(value);
  }
  writer.end(inner);
  writer.end(begin);
}

const isValue = (value: unknown): value is Attributes[string] =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

function writeId(writer: ProtobufWriter, field: number, id: string | null, size: number): void {
  writer.tag(field, WIRE.bytes);
  if (id !== null) {
    writer.hex(id);
    return;
  }
  writer.varint(size);
  // Zeros alone would be no id.
  writer.fixed32(1 + Math.floor(Math.random() * (2 ** 32 - 1)));
  for (let at = 4; at < size; at += 4) writer.fixed32(Math.floor(Math.random() * 2 ** 32));
}

function writeZero(writer: ProtobufWriter, field: number): void {
  writer.tag(field, WIRE.varint);
  writer.varint(0);
}

/** A message as a field, with its length. The writer is empty before and after. */
function messageOf(writer: ProtobufWriter, field: number, write: () => void): Uint8Array {
  writer.tag(field, WIRE.bytes);
  const begin = writer.begin();
  write();
  writer.end(begin);
  const bytes = Uint8Array.from(writer.bytes);
  writer.clear();
  return bytes;
}
