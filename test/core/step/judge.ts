// Takes one payload through the pure phases, in order and without a machine, for tests of the whole decision.

import type { PathFact, SandboxFacts } from '../../../src/core/contract/run/effect.js';
import type { SeenProposal } from '../../../src/core/contract/run/entry.js';
import { rejectWith, type CheckedValue, type ExecutionCause, type Fault } from '../../../src/core/contract/fault.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import type { Proposal } from '../../../src/core/contract/run/proposal.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import { authorizePaths } from '../../../src/core/step/authorization.js';
import { unprivilegedResult } from '../../../src/core/step/mediated-request.js';
import {
  receive,
  parse,
  identify,
  UNKNOWN_IDENTITY,
  validateSchema,
  validateProposalId,
  type Identity,
  validateAction,
  validateArgs,
} from '../../../src/core/step/check-phases.js';
import { respond, responseParts } from '../../../src/core/step/concluded-step.js';
import { testPolicy } from '../../fixtures/policy.js';

export const ID = '550e8400-e29b-41d4-a716-446655440000';

/** A valid proposal with the given differences; `undefined` removes a field. */
export const proposal = (differences: Record<string, unknown> = {}): string =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: ID,
    reasoning: 'Because it is needed.',
    action: 'READ_FILE',
    args: { path: '/sandbox/config.txt' },
    ...differences,
  });

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

export const fileFact = (bytes = 10): PathFact => ({ status: 'file', bytes, inode: '7', mtime_ns: '1' });

export const factsOf = (...paths: PathFact[]): SandboxFacts => ({ paths, usage: { bytes: 0, files: 0 } });

export interface World {
  readonly policy?: Policy;
  readonly facts?: SandboxFacts | null;
  readonly seen?: SeenProposal | null;
  /** The result of an allowed action. */
  readonly result?: JsonObject;
  readonly failure?: ExecutionCause;
}

export interface Judged {
  readonly fault: Fault | null;
  readonly identity: Identity;
  /** The authorized arguments. */
  readonly args: JsonObject | null;
  readonly response: string;
}

/** Takes a payload through RECEIVE to AUTHORIZE, applies the given execution result, and builds the response. */
export function judge(payload: string | Uint8Array, world: World = {}): Judged {
  const policy = world.policy ?? testPolicy();
  const raw = typeof payload === 'string' ? bytesOf(payload) : payload;
  let identity = UNKNOWN_IDENTITY;
  const checked = decide(raw, policy, world, (who) => (identity = who));
  const allowed = checked.ok ? checked.value : null;
  const executed = world.failure === undefined ? null : rejectWith('EXECUTION_ERROR', 'execute', world.failure);
  const fault = !checked.ok ? checked.fault : executed !== null && !executed.ok ? executed.fault : null;
  const result = allowed?.result ?? world.result ?? {};
  const response = respond(responseParts({ identity, fault, result }), policy.exposure);
  return { fault, identity, args: allowed?.args ?? null, response };
}

interface Allowed {
  readonly args: JsonObject;
  readonly result: JsonObject | null;
}

function decide(raw: Uint8Array, policy: Policy, world: World, meet: (who: Identity) => void): CheckedValue<Allowed> {
  const text = receive(raw, policy);
  if (!text.ok) return text;
  const value = parse(text.value, policy);
  if (!value.ok) return value;
  meet(identify(value.value, policy));
  const valid = validateSchema(value.value);
  if (!valid.ok) return valid;
  const unused = validateProposalId(world.seen ?? null, sha256(raw), policy);
  return unused.ok ? decideAction(valid.value, policy, world) : unused;
}

function decideAction(proposed: Proposal, policy: Policy, world: World): CheckedValue<Allowed> {
  const definition = validateAction(proposed.action, policy);
  if (!definition.ok) return definition;
  const args = validateArgs(definition.value, proposed.args, policy);
  if (!args.ok) return args;
  const { paths } = definition.value;
  const facts = world.facts === undefined ? factsOf(...paths.map(() => fileFact())) : world.facts;
  const authorized = authorizePaths({ definition: definition.value, args: args.value, facts, policy });
  if (!authorized.ok) return authorized;
  const result = unprivilegedResult(definition.value, authorized.value);
  return { ok: true, value: { args: authorized.value, result } };
}
