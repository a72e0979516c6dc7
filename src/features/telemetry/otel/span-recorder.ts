// The spans of the command. The tracer of the SDK takes a multiple of the time, for contexts, samplers, limits and
// events that no span here has.

import type { TracePoint } from '../../../core/contract/trace-context.js';
import type { OpenSpan, SpanOutcome, SpanStart, Tracer } from '../../../engine/ports/telemetry.js';
import { activePoint, runAtPoint } from './otel-telemetry.js';
import type { SpanIds } from './span-batch.js';

/** Takes a span that is over. */
export type TakeSpan = (start: SpanStart, end: SpanOutcome, ids: SpanIds) => void;

export interface SpanRecorderOptions extends Pick<Tracer, 'ratio' | 'followsCallers'> {
  readonly onEnd: TakeSpan;
}

export class SpanRecorder implements Tracer {
  readonly ratio: number;
  readonly followsCallers: boolean;
  readonly #onEnd: TakeSpan;

  constructor({ ratio, followsCallers, onEnd }: SpanRecorderOptions) {
    this.ratio = ratio;
    this.followsCallers = followsCallers;
    this.#onEnd = onEnd;
  }

  start(start: SpanStart): OpenSpan {
    return new RecordedSpan(start, this.#onEnd);
  }

  record(start: SpanStart, end: SpanOutcome): void {
    const { parent, ids } = start;
    this.#onEnd(start, end, { traceId: parent?.traceId ?? ids?.traceId ?? null, spanId: ids?.spanId ?? null });
  }

  active = activePoint;
  runAt = runAtPoint;
}

class RecordedSpan implements OpenSpan {
  /** The state is text of the caller: it is passed on, and not exported. */
  readonly point: TracePoint;
  readonly #start: SpanStart;
  readonly #onEnd: TakeSpan;
  #isOver = false;

  constructor(start: SpanStart, onEnd: TakeSpan) {
    const { parent, ids } = start;
    const traceId = parent?.traceId ?? ids?.traceId ?? randomDigits() + randomDigits();
    const spanId = ids?.spanId ?? randomDigits();
    const { tracestate, baggage } = parent ?? NO_STATE;
    this.point =
      tracestate === undefined && baggage === undefined
        ? { traceId, spanId, sampled: true }
        : {
            ...{ traceId, spanId, sampled: true },
            ...(tracestate === undefined ? {} : { tracestate }),
            ...(baggage === undefined ? {} : { baggage }),
          };
    this.#start = start;
    this.#onEnd = onEnd;
  }

  end(end: SpanOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onEnd(this.#start, end, this.point);
  }
}

const NO_STATE: Pick<TracePoint, 'tracestate' | 'baggage'> = {};

/** 16 hexadecimal digits, not all of them 0. */
const randomDigits = (): string =>
  (1 + Math.floor(Math.random() * (2 ** 32 - 1))).toString(16).padStart(8, '0') +
  Math.floor(Math.random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
