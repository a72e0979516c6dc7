// A virtual object of Restate in front of a ledger that several workers write. Restate routes, retries and starts
// timers; the ledger decides and is the only record.
//
//   R1. Restate gets ids, hashes, codes and sequence numbers. Content travels through a `ContentExchange`.
//   R2. Every handler may run again, on any worker. The ledger makes an input id take effect once, and repeats its
//       response.
//   R3. One object per case, else per tree: its submissions run one after another, so workers rarely compete for a
//       tree. Correctness does not need that. Votes, cancels and looks do not wait.
//   R4. A wake only makes sure that a worker runs when a timer is due. The worker itself fires it, once.

import {
  handlers,
  object,
  serde,
  type ObjectContext,
  type VirtualObjectDefinition,
  type ObjectSharedContext,
  RetryableError,
  TerminalError,
} from '@restatedev/restate-sdk';
import type { Static, TSchema } from 'typebox';
import { RestateServiceError, RunError, CodedError } from '../../core/errors.js';
import type { Log } from '../../engine/ports/log.js';
import type { ContentExchange } from './content-exchange.js';
import {
  CancelMessage,
  parseMessage,
  RunMessage,
  SubmitMessage,
  VoteMessage,
  type LastStep,
  type LookResult,
} from './restate-messages.js';
import { cancelRun, keyOf, rootOf, refusal, submitStep, submitVote, type RestateTurnpike } from './restate-turnpike.js';

/** The handlers of the service. `wake` is for the service itself. */
export const HANDLERS = ['submit', 'vote', 'cancel', 'wake', 'look'] as const;
/** One of `HANDLERS`. */
export type RestateHandler = (typeof HANDLERS)[number];

/** A call that `authorize` decides about. Restate does not authenticate the clients of its ingress. */
export interface RestateCall {
  readonly handler: Exclude<RestateHandler, 'wake'>;
  /** The case of the run, else its tree. */
  readonly key: string;
  readonly run_id: string;
  /** The person who votes, as the message states; null for other handlers. */
  readonly voter: { readonly actor: string; readonly role: string } | null;
  /** The headers of the client's request. Restate stores them, so they must not contain a secret. */
  readonly headers: ReadonlyMap<string, string>;
}

/** Options of the Restate service. */
export interface TurnpikeServiceOptions {
  /** An open Turnpike, with `restarts: 'automatic'` so that it recovers by itself. */
  readonly turnpike: RestateTurnpike;
  /** Where payloads and responses are. All clients and workers use the same one. */
  readonly exchange: ContentExchange;
  /** Whether a call is permitted. */
  readonly authorize: (call: RestateCall) => boolean | Promise<boolean>;
  /** The name of the service in Restate. @default 'turnpike' */
  readonly name?: string;
  /** Receives the errors behind the codes that Restate gets. Default: none. */
  readonly log?: Log;
}

/** The name of the service, unless an option states another one. */
export const SERVICE_NAME = 'turnpike';
/** Intervals of retries, in ms: short, because another worker can usually continue at once. */
const RETRY = { initialRetryInterval: 50, maxRetryInterval: 2_000, retryIntervalFactor: 2 } as const;
const INVOCATION_RETRY = { initialInterval: 50, maxInterval: 2_000, exponentiationFactor: 2 } as const;
/** How long after a timer its wake is sent, in ms: a worker that runs has fired the timer by then. */
const WAKE_AFTER_MS = 2_000;
/** The latest wake, in ms from now. A later timer is looked at again then. */
const WAKE_MS_MAX = 86_400_000;

const LAST = 'last';
const wakeKey = (run_id: string): string => `wake/${rootOf(run_id)}`;

/** Messages are bytes here, because they are limited and validated before anything else reads them. */
const BYTES = { input: serde.binary, accept: '*/*', retryPolicy: INVOCATION_RETRY } as const;

/**
 * Creates the virtual object for a Restate endpoint. Its key is the case of a run, else the id of its tree. Calls fail
 * with a TerminalError whose message is a code, or are retried while the ledger is unavailable.
 */
export function turnpikeService(options: TurnpikeServiceOptions): VirtualObjectDefinition<string, unknown> {
  const { turnpike, exchange, name = SERVICE_NAME } = options;
  const calls = new RestateCalls(options);
  return object({
    name,
    handlers: {
      submit: handlers.object.exclusive(BYTES, async (ctx: ObjectContext, bytes: Uint8Array) => {
        const message = await calls.accept(ctx, 'submit', SubmitMessage, bytes);
        const step = await calls.run(ctx, 'submit', async () => {
          const result = await submitStep(turnpike, exchange, message);
          return { result, wake_at: await turnpike.nextTimer(message.run_id) };
        });
        const { run_id, input_id, seq } = step.result;
        ctx.set<LastStep>(LAST, { run_id, input_id, seq });
        await scheduleWake(ctx, { name, run_id, wake_at: step.wake_at, isWake: false });
        return step.result;
      }),
      vote: handlers.object.shared(BYTES, async (ctx: ObjectSharedContext, bytes: Uint8Array) => {
        const message = await calls.accept(ctx, 'vote', VoteMessage, bytes);
        return calls.run(ctx, 'vote', () => submitVote(turnpike, message));
      }),
      cancel: handlers.object.shared(BYTES, async (ctx: ObjectSharedContext, bytes: Uint8Array) => {
        const message = await calls.accept(ctx, 'cancel', CancelMessage, bytes);
        return calls.run(ctx, 'cancel', () => cancelRun(turnpike, message));
      }),
      wake: handlers.object.exclusive(
        { ...BYTES, ingressPrivate: true },
        async (ctx: ObjectContext, bytes: Uint8Array) => {
          const { run_id } = calls.parse(RunMessage, bytes);
          const wake_at = await calls.run(ctx, 'wake', () => turnpike.nextTimer(run_id));
          await scheduleWake(ctx, { name, run_id, wake_at, isWake: true });
        },
      ),
      look: handlers.object.shared(BYTES, async (ctx: ObjectSharedContext, bytes: Uint8Array) => {
        const { run_id } = await calls.accept(ctx, 'look', RunMessage, bytes);
        const last = await ctx.get<LastStep>(LAST);
        return calls.run(ctx, 'look', () => look(turnpike, run_id, last));
      }),
    },
  });
}

/** What every handler does before and around its work. */
class RestateCalls {
  readonly #options: TurnpikeServiceOptions;

  constructor(options: TurnpikeServiceOptions) {
    this.#options = options;
  }

  /** @throws TerminalError MESSAGE_INVALID */
  parse<T extends TSchema>(schema: T, bytes: Uint8Array): Static<T> {
    const message = parseMessage(schema, bytes);
    if (message === null) throw toRestateError(refusal('MESSAGE_INVALID'));
    return message;
  }

  /** @throws TerminalError MESSAGE_INVALID, RUN_UNKNOWN, KEY_MISMATCH, RIGHT_MISSING; otherwise the call is retried */
  async accept<T extends TSchema>(
    ctx: ObjectSharedContext,
    handler: RestateCall['handler'],
    schema: T,
    bytes: Uint8Array,
  ): Promise<Static<T>> {
    const message = this.parse(schema, bytes);
    const { run_id, actor, role } = message as RunMessage & Partial<VoteMessage>;
    const voter = actor === undefined || role === undefined ? null : { actor, role };
    const { key } = ctx;
    const headers = ctx.request().headers;
    await this.#report(handler, async () => {
      if ((await keyOf(this.#options.turnpike, run_id)) !== key) throw refusal('KEY_MISMATCH');
      const isPermitted = await this.#options.authorize({ handler, key, run_id, voter, headers });
      if (!isPermitted) throw refusal('RIGHT_MISSING');
    });
    return message;
  }

  /** Runs `work` and journals its result. */
  run<Result>(ctx: ObjectSharedContext, name: RestateHandler, work: () => Promise<Result>): Promise<Result> {
    return Promise.resolve(ctx.run(name, () => this.#report(name, work), RETRY));
  }

  async #report<Result>(handler: RestateHandler, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RestateServiceError))
        this.#options.log?.warn('a call of Restate failed', { handler, error });
      throw toRestateError(error);
    }
  }
}

interface WakeOptions {
  readonly name: string;
  readonly run_id: string;
  readonly wake_at: string | null;
  /** Whether this is the wake that was scheduled, so that the next one is due. */
  readonly isWake: boolean;
}

/** R4. Sends the next wake, unless one is scheduled that is early enough. */
async function scheduleWake(ctx: ObjectContext, { name, run_id, wake_at, isWake }: WakeOptions): Promise<void> {
  const key = wakeKey(run_id);
  const scheduled = isWake ? null : await ctx.get<number>(key);
  if (wake_at === null) {
    if (isWake) ctx.clear(key);
    return;
  }
  const now = await ctx.date.now();
  const due = Math.max(now, Date.parse(wake_at)) + WAKE_AFTER_MS;
  if (scheduled !== null && scheduled <= due) return;
  const at = Math.min(due, now + WAKE_MS_MAX);
  ctx.set(key, at);
  const parameter = Buffer.from(JSON.stringify({ run_id }));
  ctx.genericSend({
    ...{ service: name, method: 'wake', key: ctx.key },
    ...{ parameter, inputSerde: serde.binary, delay: at - now },
  });
}

async function look(turnpike: RestateTurnpike, run_id: string, last: LastStep | null): Promise<LookResult> {
  const record = await turnpike.ledger.run(run_id);
  if (record === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no run ${run_id}` });
  const { status, outcome } = record;
  return { run_id, state: status, reason: outcome ?? null, wake_at: await turnpike.nextTimer(run_id), last };
}

/** Failures that no retry can change, with the HTTP status that the ingress returns. Everything else is retried. */
const TERMINAL: Readonly<Record<string, number>> = {
  MESSAGE_INVALID: 400,
  USAGE: 400,
  RIGHT_MISSING: 403,
  KEY_MISMATCH: 404,
  RUN_UNKNOWN: 404,
  RUN_ENDED: 409,
  RUN_KEY_CONFLICT: 409,
  INVALID_STATE_TRANSITION: 409,
  IDEMPOTENCY_CONFLICT: 409,
  LEDGER_ARCHIVED: 410,
  LEDGER_ERASED: 410,
  PAYLOAD_UNKNOWN: 422,
  LEDGER_TAMPERED: 500,
  LEDGER_BELOW_HEAD: 500,
  STORAGE_BUDGET: 507,
};

/** The error for Restate: a TerminalError whose message is the code, or an error that Restate retries. */
export function toRestateError(error: unknown): TerminalError | RetryableError {
  if (error instanceof TerminalError) return error;
  const code = error instanceof CodedError ? String(error.code) : 'UNAVAILABLE';
  const status = TERMINAL[code];
  return status === undefined
    ? new RetryableError(code, { errorCode: 503 })
    : new TerminalError(code, { errorCode: status, metadata: { code } });
}
