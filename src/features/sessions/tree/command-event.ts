// Turns the inputs of a session into the events of its machine.

import type { Artifact } from '../../../core/contract/artifact-ref.js';
import { isJsonObject, type JsonObject } from '../../../core/contract/json.js';
import { isConforming } from '../../../core/contract/validators.js';
import { InvariantError } from '../../../core/errors.js';
import type { SessionInput } from '../contract/session-input.js';
import { SessionSpec } from '../contract/session-spec.js';
import type { CommandEvent } from '../machine/session-machine.js';
import type { StepWork } from '../rules/turn-builder.js';

/** @throws InvariantError if the artifact is not a valid spec; the caller must have checked it */
export function parseSpecArtifact(artifact: Artifact | undefined): SessionSpec {
  const value: unknown = artifact === undefined ? null : JSON.parse(decoder.decode(artifact.bytes));
  if (isConforming(SessionSpec, value)) return value as SessionSpec;
  throw new InvariantError('a session without a spec');
}

/** The event for a session command, with the state of the tree that the session rules need. */
export function commandEvent(
  { command, time, input_id, by, vouch, overlay }: SessionInput,
  [material]: readonly Artifact[],
  work: StepWork,
): CommandEvent {
  const report = command.name === 'next' && command.report !== null ? parseReportArtifact(material) : null;
  const new_spec = command.name === 'rebase' ? parseSpecArtifact(material) : null;
  const { actor, role } = by;
  return {
    type: 'COMMAND',
    command,
    context: { time, input_id, actor, role, vouch, report, new_spec, work },
    overlay,
  };
}

function parseReportArtifact(material: Artifact | undefined): JsonObject {
  const value: unknown = material === undefined ? null : JSON.parse(decoder.decode(material.bytes));
  if (!isJsonObject(value)) throw new InvariantError('a report must be a JSON object');
  return value;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
