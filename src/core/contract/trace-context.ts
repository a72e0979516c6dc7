// W3C trace context: its text, and the ids of a run tree's trace. It authorises nothing and is never recorded.

import { sha256 } from './hash.js';

/** The trace context as HTTP headers and `_meta` of MCP carry it. */
export interface TraceCarrier {
  readonly traceparent: string;
  /** Only from an embedding service: it is text, which an agent could use to pass content on. */
  readonly tracestate?: string;
  /** Only from an embedding service, as `tracestate`. */
  readonly baggage?: string;
}

/** A place in a trace: the parent of what follows. */
export interface TracePoint {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the trace is recorded. */
  readonly sampled: boolean;
  /** Whether the span belongs to another process. */
  readonly remote?: boolean;
  readonly tracestate?: string;
  readonly baggage?: string;
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-)/;
const TRACEPARENT_CHARS = 55;
const TRACEPARENT_CHARS_MAX = 256;
const TRACESTATE_CHARS_MAX = 512;
const BAGGAGE_CHARS_MAX = 8_192;
/** What a header can hold. */
const HEADER_TEXT = /^[\x20-\x7e]+$/;
const SAMPLED = 1;

/** @returns null for anything that is no valid trace context */
export function parseTraceCarrier({ traceparent, tracestate, baggage }: TraceCarrier): TracePoint | null {
  if (typeof traceparent !== 'string' || traceparent.length > TRACEPARENT_CHARS_MAX) return null;
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  // Version 00 has exactly these fields; a later one may have more.
  if (traceparent.startsWith('00') && traceparent.length !== TRACEPARENT_CHARS) return null;
  return {
    traceId,
    spanId,
    sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED,
    remote: true,
    ...(isHeaderText(tracestate, TRACESTATE_CHARS_MAX) ? { tracestate } : {}),
    ...(isHeaderText(baggage, BAGGAGE_CHARS_MAX) ? { baggage } : {}),
  };
}

/**
 * The trace context of an agent's request: `traceparent` alone. The other two are text of the agent, which would reach
 * tools and other servers without a decision of the policy.
 */
export function agentTrace(traceparent: unknown): { readonly trace: TraceCarrier } | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const point = parseTraceCarrier({ traceparent });
  return point === null ? undefined : { trace: { traceparent: formatTraceparent(point) } };
}

export const formatTraceparent = ({ traceId, spanId, sampled }: TracePoint): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

/** The carrier of a place in a trace, for what is called from there. */
export function toTraceCarrier(point: TracePoint): TraceCarrier {
  const { tracestate, baggage } = point;
  return {
    traceparent: formatTraceparent(point),
    ...(tracestate === undefined ? {} : { tracestate }),
    ...(baggage === undefined ? {} : { baggage }),
  };
}

const TRACE_ID_CHARS = 32;
const SPAN_ID_CHARS = 16;

/** The trace of a run tree that no caller's trace contains: the same in every process, also after a restart. */
export const traceIdOf = (tree_id: string): string => sha256(`turnpike trace ${tree_id}`).slice(0, TRACE_ID_CHARS);

/** The span of a run: the same in every process, so that a later one can report the end of the run. */
export const spanIdOf = (run_id: string): string => sha256(`turnpike span ${run_id}`).slice(0, SPAN_ID_CHARS);

const RATIO_DIGITS = 8;

/** Whether a trace belongs to the share that is recorded. Every process decides the same. */
export const isInRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(0, RATIO_DIGITS), 16) < ratio * 16 ** RATIO_DIGITS;

const isHeaderText = (text: unknown, charsMax: number): text is string =>
  typeof text === 'string' && text.length <= charsMax && HEADER_TEXT.test(text);
