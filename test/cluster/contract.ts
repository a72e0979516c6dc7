// The policy and the tools of the campaign. Each tool leaves one line outside of the ledger whenever it acts.
//
//   billing.charge  cannot be queried afterwards
//   mail.send       acts once for each key, so it may be called again
//   bank.transfer   can be queried

import { cpSync, openSync, closeSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Type from 'typebox';
import { pinManifest } from '../../src/home/policy/manifest-policy-source.js';
import { errorCode } from '../../src/system/error-code.js';
import { defineTool, type EffectContext, type Tool } from '../../src/runtime/effects/define-effects.js';
import { shippedContract } from '../../src/runtime/shipped-contract.js';
import { unapproved } from '../fixtures/unapproved.js';
import { addDeed, deedsOf, type Places } from './places.js';

export const TOOLS = ['billing.charge', 'mail.send', 'bank.transfer'] as const;
export const AGENT = { lane: 'CASE_WORK', role: 'CASE_AGENT' } as const;
/** The quota of the sandbox of a case, in bytes. */
export const QUOTA_BYTES = 40_000;
/** How many tool calls one tree may make. */
export const TOOL_CALLS_MAX = 20;

/** Creates the policy. */
export function writeContract({ contract, sandbox }: Places): void {
  mkdirSync(sandbox, { recursive: true });
  cpSync(join(shippedContract(), 'policy'), join(contract, 'policy'), { recursive: true });
  const files = (['lanes', 'roles', 'actions'] as const).map((name) => {
    const path = `policy/${name}.yaml`;
    const bytes = Buffer.from(edited(name, readFileSync(join(contract, path), 'utf8')));
    writeFileSync(join(contract, path), bytes);
    return { path, bytes, pin: { problem: 'never_committed' as const } };
  });
  writeFileSync(join(contract, 'pins.json'), JSON.stringify(pinManifest(files)));
}

function edited(name: 'lanes' | 'roles' | 'actions', text: string): string {
  if (name === 'lanes') return `${text}${LANE}`;
  if (name === 'roles') return `${text}${ROLE}`;
  return unapproved(text)
    .replace('  - action: CREATE_DIRECTORY', '  - action: CALL_TOOL\n  - action: CREATE_DIRECTORY')
    .replace(/bytes_max: 104857600/u, `bytes_max: ${QUOTA_BYTES}`);
}

const LANE = `
  - lane_id: CASE_WORK
    purpose: Tools and files of one case.
    allowed_callers: { roles: [CASE_AGENT] }
    allowed_actions:
      tools: [${[...TOOLS, 'sandbox.write_file', 'sandbox.read_file'].join(', ')}]
      writes:
        - { table: sandbox_files, mode: upsert }
    scope: { requires: [case_id, run_id], prohibits: [] }
    audit: { required: true, level: full }
`;

const ROLE = `
  - role_id: CASE_AGENT
    description: An agent with tools and files.
    class: agent
    privileges: { lanes: [CASE_WORK] }
`;

const closed = { additionalProperties: false } as const;
const Text = Type.String({ maxLength: 120 });
const input = Type.Object({ what: Text, ms: Type.Integer({ minimum: 0, maximum: 20_000 }) }, closed);
const output = Type.Object({ receipt: Text }, closed);

/** The tools of a worker. A call takes as long as its input says, half of it before the deed. */
export function toolsOf(places: Places): readonly Tool[] {
  return TOOLS.map((name) => {
    const run = async ({ what, ms }: { what: string; ms: number }, { idempotency_key: key }: EffectContext) => {
      if (ms > 0) await pause(ms / 2);
      if (name !== 'mail.send' || isFirst(places, key)) addDeed(places, { tool: name, key, what });
      if (ms > 0) await pause(ms / 2);
      return { receipt: what };
    };
    const reconcile = ({ what }: { what: string }, { idempotency_key: key }: EffectContext) =>
      deedsOf(places).some((deed) => deed.key === key) ? { done: { receipt: what } } : ('not_executed' as const);
    const idempotent = name === 'mail.send';
    return defineTool({ name, input, output, idempotent, run, ...(name === 'bank.transfer' ? { reconcile } : {}) });
  });
}

/** Whether no call with this key was made before, in any process. */
function isFirst({ folder }: Places, key: string): boolean {
  mkdirSync(join(folder, 'sent'), { recursive: true });
  try {
    closeSync(openSync(join(folder, 'sent', key), 'wx'));
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}
