// Real payloads: the recorded session and the hostile material of the documents, and payloads from the external suites.
// Mutations start with them.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACTION_NAMES } from '../../src/core/contract/policy/catalogue.js';
import { bytesOf } from './bytes.js';
import { fixtures, ROOT, suiteFolder } from './places.js';

export interface Corpora {
  readonly payloads: readonly Uint8Array[];
  /** One line for each suite that is not installed. */
  readonly skipped: readonly string[];
}

const ID = '00000000-0000-4000-8000-000000000000';

const proposal = (action: string, args: unknown, reasoning = 'Because it is needed.'): Uint8Array =>
  bytesOf(JSON.stringify({ schema_version: '1.0.0', id: ID, reasoning, action, args }));

const linesOf = (path: string): readonly string[] =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];

/** Each attack tool as an action, and its instruction as the reasoning of a read. */
function asb(folder: string): readonly Uint8Array[] {
  const tools = linesOf(join(folder, 'all_attack_tools.jsonl')).map(
    (line) => JSON.parse(line) as Record<string, string>,
  );
  return tools.flatMap((tool) => {
    const instruction = tool['Attacker Instruction'] ?? '';
    return [
      proposal(tool['Attacker Tool'] ?? '', { goal: tool['Attack goal'] }, instruction),
      proposal('READ_FILE', { path: '/sandbox/README.md' }, instruction),
    ];
  });
}

/** Each injected goal as reasoning, as content and as a final response. */
function agentdojo(folder: string): readonly Uint8Array[] {
  const { goals } = JSON.parse(readFileSync(join(folder, 'goals.json'), 'utf8')) as { goals: { goal_src: string }[] };
  return goals.flatMap(({ goal_src }) => [
    proposal('THINK', {}, goal_src),
    proposal('WRITE_FILE', { path: '/sandbox/notes/goal.md', content: goal_src }),
    proposal('FINISH', { response: goal_src }),
  ]);
}

/** Each path of the vectors below the sandbox, under an action that takes it. */
function libpathrs(folder: string): readonly Uint8Array[] {
  const { resolve } = JSON.parse(readFileSync(join(folder, 'vectors.json'), 'utf8')) as { resolve: { path: string }[] };
  const actions = ACTION_NAMES.filter((name) => name !== 'THINK' && name !== 'FINISH');
  return resolve.map(({ path }, index) => {
    const action = actions[index % actions.length] ?? 'READ_FILE';
    const target = `/sandbox/${path}`;
    if (action === 'RENAME_FILE') return proposal(action, { source: target, destination: `${target}.txt` });
    return proposal(action, action === 'WRITE_FILE' ? { path: target, content: 'x' } : { path: target });
  });
}

/** Each input as a payload, as arguments, and as the text of a file. */
function jcs(folder: string): readonly Uint8Array[] {
  const inputs = join(folder, 'testdata/input');
  return readdirSync(inputs).flatMap((name) => {
    const text = readFileSync(join(inputs, name), 'utf8');
    return [
      bytesOf(text),
      bytesOf(`{"schema_version":"1.0.0","id":"${ID}","reasoning":"x","action":"THINK","args":${text}}`),
      proposal('WRITE_FILE', { path: '/sandbox/notes/input.md', content: text }),
    ];
  });
}

const SUITES = { asb, agentdojo, libpathrs, jcs } as const;

export function corpora(): Corpora {
  const material = ['docs/examples/material/session.jsonl', 'docs/examples/material/hostile.jsonl'];
  const own = [...material, 'docs/examples/proposals.jsonl'].flatMap((path) => linesOf(join(ROOT, path)).map(bytesOf));
  const skipped: string[] = [];
  const foreign = Object.entries(SUITES).flatMap(([name, read]) => {
    const folder = suiteFolder(name);
    if (folder === null) skipped.push(`skipped: the suite ${name} is not installed (TURNPIKE_SUITES names its folder)`);
    return folder === null ? [] : read(folder);
  });
  return { payloads: [...fixtures('payloads').map(({ bytes }) => bytes), ...own, ...foreign], skipped };
}
