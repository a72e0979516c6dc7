// Writes the replies of a client from the few forms in which clients differ.

import type { JsonObject } from '../../../core/contract/json.js';
import type { Dialect, HookReply } from '../dialect.js';
import type { Client, HookAnswer } from '../hook-event.js';
import { kindOf, readEventBy, type EventRules } from './event-reader.js';

/** How a client writes its events and reads the answers. */
export interface DialectRules {
  readonly client: Client;
  readonly events: EventRules;
  /** The body that lets a call go on; null if silence does it. */
  allow(runId: string): JsonObject | null;
  /** The body that stops a call. `event` is null if it was not readable at all. */
  deny(reason: string, event: JsonObject | null): JsonObject;
  /** The body for a call that needs an approval. It must stop the call too. */
  pending(reason: string, event: JsonObject): JsonObject;
  /** The body that ends a session at its start, or tells the user why its calls will be denied. */
  refuseSession(reason: string): JsonObject;
  /** The exit code that stops a call if the body does not arrive. */
  readonly failureExit: 0 | 2;
}

const UNDECIDED = 'Turnpike: the call was not decided, so it is denied';

/** The dialect of a client. A call without a decision is stopped, whatever the reason. */
export const dialectOf = (rules: DialectRules): Dialect => ({
  client: rules.client,
  readEvent: (event) => readEventBy(event, rules.events),
  writeReply: (answer, event) => writeReply(answer, event, rules),
  writeFailure: (reason, event) => writeFailure(reason, event, rules),
});

const writeReply = (answer: HookAnswer, event: JsonObject, rules: DialectRules): HookReply => {
  const kind = kindOf(event, rules.events);
  if (kind === null) return writeFailure(UNDECIDED, event, rules);
  if (kind === 'call') return writeCallReply(answer, event, rules);
  const refuses = kind === 'session_start' && (answer.decision === 'deny' || answer.decision === 'pending');
  return bodyReply(refuses ? rules.refuseSession(answer.reason) : null);
};

const writeCallReply = (answer: HookAnswer, event: JsonObject, rules: DialectRules): HookReply => {
  switch (answer.decision) {
    case 'allow':
      return bodyReply(rules.allow(answer.run_id));
    case 'deny':
      return bodyReply(rules.deny(answer.reason, event));
    case 'pending':
      return bodyReply(rules.pending(answer.reason, event));
    case 'none':
      return writeFailure(UNDECIDED, event, rules);
  }
};

/** Clients go on after exit 2 if nothing says why, so there is always a text. An event after the call stops nothing. */
const writeFailure = (reason: string, event: JsonObject | null, rules: DialectRules): HookReply => {
  const text = reason.trim() === '' ? UNDECIDED : reason;
  const kind = event === null ? null : kindOf(event, rules.events);
  return kind === null || kind === 'call'
    ? { body: rules.deny(text, event), exit: rules.failureExit, stderr: text }
    : { body: null, exit: 0, stderr: text };
};

const bodyReply = (body: JsonObject | null): HookReply => ({ body, exit: 0, stderr: '' });
