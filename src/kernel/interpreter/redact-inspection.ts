// Redacts XState's inspection events of a tree in which a lane withholds content. Every inspector sees hashes in place
// of contexts, outputs, and the data of events and actions (C83). States, names and types stay visible.

import type { InspectionEvent } from 'xstate';
import { sha256 } from '../../core/contract/hash.js';
import type { Policy } from '../../core/policy/policy.js';
import { hasWithholdingLane } from '../../core/policy/authorize-run.js';
import { InertCopies } from './inert-inspector.js';
import type { Interpretation } from './interpreter.js';

/** The interpretation of a tree under this policy, with redaction if the policy requires it. */
export function redactInspection(interpretation: Interpretation, policy: Pick<Policy, 'lanes'>): Interpretation {
  if (interpretation.interpreter !== 'xstate' || interpretation.inspect === undefined || !hasWithholdingLane(policy))
    return interpretation;
  const { inspect } = interpretation;
  const copies = new InertCopies(() => undefined, hashOf);
  return { interpreter: 'xstate', inspect: (event: InspectionEvent) => inspect(copies.copyEvent(event)) };
}

/** Replaces a value with the hash of its JSON; a value without JSON has no hash. */
function hashOf(value: unknown): object {
  const text = jsonOf(value);
  return text === undefined ? {} : { sha256: sha256(text), bytes: Buffer.byteLength(text) };
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_key, member: unknown) =>
      ArrayBuffer.isView(member)
        ? Buffer.from(member.buffer, member.byteOffset, member.byteLength).toString('base64')
        : member,
    );
  } catch {
    return undefined;
  }
}
