// The requests of other processes to the gate for coding agents: an event as another process or an HTTP client sends
// it, and a person who reopens a session.

import Type from 'typebox';
import { type JsonObject, isJsonObject, scanJson } from '../../../core/contract/json.js';
import { CaseId, closed, Identifier, Nullable, OneOf, RunId } from '../../../core/contract/shapes.js';
import { isInstance } from '../../../core/contract/validators.js';
import { usageError } from '../../../core/errors.js';
import type { AddedMembers, RequestReader } from '../../../runtime/host-feature.js';
import { SETTINGS_VARIABLES } from '../clients/client-names.js';
import { CLIENTS, UNDECIDED_REASONS } from '../hook-event.js';
import { UNDECIDED_MAX } from '../client-files/count-files.js';
import type { HookGate } from './hook-gate.js';

/** The longest event, in UTF-16 units. */
const EVENT_CHARS_MAX = 4_194_304;
const DEPTH_MAX = 64;

const Count = Type.Integer({ minimum: 1, maximum: UNDECIDED_MAX });
const Path = Type.String({ maxLength: 4_096 });
const ActorName = Type.String({ minLength: 3, maxLength: 80 });

/** What a check of the client has found. */
const ClientCheckShape = Type.Object(
  {
    version: Nullable(Type.String({ pattern: '^[0-9A-Za-z.+-]{1,40}$' })),
    findings: Type.Array(Type.String({ pattern: '^[a-z0-9_.-]{1,80}$' }), { maxItems: 64 }),
    /** The variables by which the client finds its settings. */
    environment: Type.Optional(
      Type.Partial(Type.Object(Object.fromEntries(SETTINGS_VARIABLES.map((name) => [name, Path])), closed)),
    ),
  },
  closed,
);

/** An event as the hook program sends it. */
const HookQuestion = Type.Object(
  {
    client: OneOf(CLIENTS),
    /** The text of the event as the client has written it. */
    event: Type.String({ maxLength: EVENT_CHARS_MAX }),
    caller: Type.Object(
      {
        actor: ActorName,
        person: Type.Optional(ActorName),
        role: Identifier,
        lane: Identifier,
        case: CaseId,
        project: Type.String({ pattern: '^/', maxLength: 4_096 }),
      },
      closed,
    ),
    check: Type.Optional(ClientCheckShape),
    /** What the hook has denied in this session without a decision. */
    undecided: Type.Optional(
      Type.Partial(Type.Object(Object.fromEntries(UNDECIDED_REASONS.map((reason) => [reason, Count])), closed)),
    ),
  },
  closed,
);
/** The event; null if the text is not strict JSON with an object. */
export function parseHookEvent(text: string): JsonObject | null {
  const scanned = scanJson(text, DEPTH_MAX, 'exact');
  return scanned.ok && isJsonObject(scanned.value) ? scanned.value : null;
}

/** One event of a coding agent. Its text is parsed strictly. What the hook reports of its client is not all. */
export const readHookRequest: RequestReader = (request) => {
  if (!isInstance(HookQuestion, request)) return null;
  const { client, event, caller, check, undecided } = request;
  return async ({ members }) => {
    const gate = requireGate(members);
    const checked = check === undefined ? undefined : await gate.check(client, caller.project, check);
    return gate.answer(client, parseHookEvent(event), caller, checked, undecided);
  };
};

const Text = Type.String({ maxLength: 400 });
/** A person reopens a session of a coding agent. */
const ReopenRequest = Type.Object({ reopening: Type.Object({ run: RunId, actor: Text, role: Text }, closed) }, closed);

export const readReopenRequest: RequestReader = (request) => {
  if (!isInstance(ReopenRequest, request)) return null;
  const { reopening } = request;
  return async ({ members }) => {
    await requireGate(members).reopen(reopening);
    return {};
  };
};

/** @throws UsageError */
function requireGate({ hooks }: AddedMembers): HookGate {
  if (hooks !== null) return hooks;
  throw usageError('the process that has this home decides no calls of coding agents: start it with --hooks');
}
