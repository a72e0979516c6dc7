// XState's inspection events of a tree in which a lane withholds content: what the machines remember, what events and
// actions carry and what actors give out is a hash, for every inspector (C83). States, names and types are shown.

import type { InspectionEvent } from 'xstate';
import { sha256 } from '../../contract/hash.js';
import type { Policy } from '../../policy/policy.js';
import { hasWithholdingLane } from '../../policy/content/withheld-content.js';
import { InertCopies } from './inert-inspection.js';
import type { Interpretation } from './interpreter.js';

/** How a tree is run that is judged by this policy. */
export function redactInspection(interpretation: Interpretation, policy: Pick<Policy, 'lanes'>): Interpretation {
  if (interpretation.interpreter !== 'xstate' || interpretation.inspect === undefined || !hasWithholdingLane(policy))
    return interpretation;
  const { inspect } = interpretation;
  const copies = new InertCopies(() => undefined, hashOf);
  return { interpreter: 'xstate', inspect: (event: InspectionEvent) => inspect(copies.copyEvent(event)) };
}

/** A value by the hash of its JSON; what has no JSON has no hash. */
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
