// The spans of the command. Each is one object from its start to the exporter. The tracer of the SDK takes a multiple
// of the time, for contexts, samplers, limits and events that no span here has.

import { RandomIdGenerator, type ReadableSpan } from '@opentelemetry/sdk-trace';
import type { TracePoint } from '../../contract/trace-context.js';
import type { OpenSpan, SpanOutcome, SpanStart, Tracer } from '../../ports/telemetry.js';
import { toHrTime } from './hr-time.js';
import { activePoint, runAtPoint, SpanKind, SpanStatusCode, toSpanContext } from './otel-telemetry.js';

type SpanContext = ReturnType<ReadableSpan['spanContext']>;

export interface SpanRecorderOptions extends Pick<Tracer, 'ratio' | 'followsCallers'> {
  /** The name of the instrumentation. */
  readonly scope: string;
  readonly resource: ReadableSpan['resource'];
  /** Takes a span that is over. */
  readonly onEnd: (span: ReadableSpan) => void;
}

/** What all spans of a recorder have in common. */
interface SpanOrigin {
  readonly instrumentationScope: ReadableSpan['instrumentationScope'];
  readonly resource: ReadableSpan['resource'];
  readonly onEnd: (span: ReadableSpan) => void;
}

export class SpanRecorder implements Tracer {
  readonly ratio: number;
  readonly followsCallers: boolean;
  readonly #origin: SpanOrigin;

  constructor({ ratio, followsCallers, scope, resource, onEnd }: SpanRecorderOptions) {
    this.ratio = ratio;
    this.followsCallers = followsCallers;
    this.#origin = { instrumentationScope: { name: scope }, resource, onEnd };
  }

  start(start: SpanStart): OpenSpan {
    return new RecordedSpan(start, this.#origin);
  }

  record(start: SpanStart, end: SpanOutcome): void {
    new RecordedSpan(start, this.#origin).end(end);
  }

  active = activePoint;
  runAt = runAtPoint;
}

const ids = new RandomIdGenerator();
const UNSET = { code: SpanStatusCode.UNSET };
const ERROR = { code: SpanStatusCode.ERROR };
/** The flag of a trace that is recorded. */
const SAMPLED = 1;
const NONE: never[] = [];

class RecordedSpan implements ReadableSpan, OpenSpan {
  /** The state is text of the caller: it is passed on, and not exported. */
  readonly point: TracePoint & Pick<SpanContext, 'traceFlags'>;
  readonly name: string;
  readonly kind: ReadableSpan['kind'];
  readonly parentSpanContext?: SpanContext;
  readonly startTime: ReadableSpan['startTime'];
  readonly links: ReadableSpan['links'];
  attributes: ReadableSpan['attributes'];
  endTime: ReadableSpan['endTime'] = [0, 0];
  status: ReadableSpan['status'] = UNSET;
  ended = false;
  readonly #origin: SpanOrigin;

  constructor({ name, kind, parent, startMs, attributes, ids: chosen, link }: SpanStart, origin: SpanOrigin) {
    this.name = name;
    this.kind = kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL;
    this.startTime = toHrTime(startMs);
    this.attributes = attributes;
    this.links = link === undefined ? NONE : [{ context: toOwnContext(link) }];
    if (parent !== null) this.parentSpanContext = toOwnContext(parent);
    this.#origin = origin;
    const traceId = parent?.traceId ?? chosen?.traceId ?? ids.generateTraceId();
    const spanId = chosen?.spanId ?? ids.generateSpanId();
    const { tracestate, baggage } = parent ?? {};
    this.point = {
      traceId,
      spanId,
      sampled: true,
      traceFlags: SAMPLED,
      ...(tracestate === undefined ? {} : { tracestate }),
      ...(baggage === undefined ? {} : { baggage }),
    };
  }

  end({ endMs, attributes, error }: SpanOutcome): void {
    if (this.ended) return;
    this.ended = true;
    this.endTime = toHrTime(endMs);
    if (attributes !== undefined) this.attributes = { ...this.attributes, ...attributes };
    if (error !== undefined && error !== null) {
      this.attributes = { ...this.attributes, 'error.type': error };
      this.status = ERROR;
    }
    this.#origin.onEnd(this);
  }

  spanContext(): SpanContext {
    return this.point;
  }

  get duration(): ReadableSpan['duration'] {
    const [[startSeconds, startNs], [endSeconds, endNs]] = [this.startTime, this.endTime];
    return toHrTime((endSeconds - startSeconds) * 1e3 + (endNs - startNs) / 1e6);
  }

  get resource(): ReadableSpan['resource'] {
    return this.#origin.resource;
  }

  get instrumentationScope(): ReadableSpan['instrumentationScope'] {
    return this.#origin.instrumentationScope;
  }

  readonly events = NONE;
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
}

/** The state is not part of it: it is text of the caller. */
const toOwnContext = ({ traceId, spanId, sampled, remote = false }: TracePoint): SpanContext =>
  toSpanContext({ traceId, spanId, sampled, remote });
