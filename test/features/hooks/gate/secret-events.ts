// Compares what is decided and recorded of an event that has secrets with what its client executes.

import { canonicalJson } from '../../../../src/core/contract/json.js';
import { DEFAULT_SECRETS } from '../../../../src/core/contract/policy/secret-patterns.js';
import { projectPath } from '../../../../src/system/files/project-path.js';
import { DIALECTS } from '../../../../src/features/hooks/dialects.js';
import type { CallRules } from '../../../../src/core/policy/policy-features.js';
import { decideCall } from '../../../../src/features/hooks/calls/call-decision.js';
import { callParts } from '../../../../src/features/hooks/calls/call-parts.js';
import {
  recordableCall,
  type RecordableCall,
  type RecordingRules,
} from '../../../../src/features/hooks/gate/recordable-call.js';
import { randomFrom, secretEvent, type SecretEvent } from '../../../fixtures/hooks/secret-events.js';

/** How the events of one seed were answered. */
export interface SecretCounts {
  unreadable: number;
  denied: number;
  allowed: number;
  /** What must not be: a secret that is recorded, or a decision about other parts than those of the client. */
  readonly wrong: string[];
}

export function answerSecretEvents(seed: number, events: number, rules: CallRules): SecretCounts {
  const random = randomFrom(seed);
  const counts: SecretCounts = { unreadable: 0, denied: 0, allowed: 0, wrong: [] };
  for (let event = 0; event < events; event += 1) answer(secretEvent(random), rules, counts);
  return counts;
}

function answer(given: SecretEvent, rules: CallRules, counts: SecretCounts): void {
  const found = recordedOf(given, DEFAULT_SECRETS);
  if (found === null) {
    counts.unreadable += 1;
    return;
  }
  const recorded = canonicalJson([found.call.input, found.event]);
  const { tool, input } = found.call;
  const { decision } = decideCall(rules, { tool, input });
  if (given.secrets.some((secret) => isIn(secret, recorded))) counts.wrong.push(`recorded: ${JSON.stringify(given)}`);
  if (decision === 'unreadable' || decision === 'deny') {
    counts[decision === 'deny' ? 'denied' : 'unreadable'] += 1;
    return;
  }
  counts.allowed += 1;
  // Without patterns, nothing is removed: these are the parts of what the client executes.
  const original = recordedOf(given, []);
  const isSame = original !== null && canonicalJson(partsOf(original)) === canonicalJson(partsOf(found));
  if (!isSame) counts.wrong.push(`decided about another call: ${JSON.stringify(given)}`);
}

const partsOf = ({ call: { tool, input } }: RecordableCall) =>
  (callParts(tool, input) ?? []).map((part) => ({ ...part }));

function recordedOf({ client, event }: SecretEvent, secrets: RecordingRules['secrets']): RecordableCall | null {
  const dialect = DIALECTS[client];
  const read = dialect.readEvent(event);
  if (read?.kind !== 'call') return null;
  const resolve = (path: string, cwd: string): string => projectPath(path, '/project', cwd);
  return recordableCall(event, read, { dialect, secrets, resolve, project: '/project' });
}

/** Whether the text has twelve characters of the secret in a row, behind its prefix. */
function isIn(secret: string, text: string): boolean {
  const body = JSON.stringify(secret.slice(-16)).slice(1, -1);
  return text.includes(body);
}
