// Calls of coding agents with text that looks like a secret (0064): what is decided is what the client executes.

import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Json, type JsonObject, canonicalJson } from '../../../../src/core/contract/json.js';
import { CLIENTS, type Client } from '../../../../src/features/hooks/hook-event.js';
import type { HookCaller } from '../../../../src/features/hooks/gate/hook-gate.js';
import { Bench } from '../../../fixtures/bench.js';
import { codingCaller, codingEdit } from '../../../fixtures/coding-policy.js';
import { callEvent, shellCall } from '../../../fixtures/hooks/call-event.js';
import { codingRules } from '../../../fixtures/hooks/coding-rules.js';
import { answerSecretEvents } from './secret-events.js';

const SAFE = { version: '2.1.330', findings: [] } as const;
const TOKEN = `eyJhbGciOiJ${'A'.repeat(48)}`;
let bench: Bench;
let caller: HookCaller;
beforeEach(async () => {
  bench = await Bench.open({ edit: codingEdit, hooks: true });
  caller = codingCaller(bench);
});
afterEach(() => bench.close());

const answer = async (client: Client, event: JsonObject): Promise<string> => {
  const result = await bench.turnpike.hooks!.answer(client, event, caller, SAFE);
  return result.unchecked === true ? 'unchecked' : canonicalJson(result.reply.body ?? null);
};
const ask = (client: Client, tool: string, input: Json): Promise<string> =>
  answer(client, callEvent(client, tool, input));

/** Whether a file of the home directory has the text. */
async function isRecorded(text: string): Promise<boolean> {
  await bench.turnpike.close();
  const found = execFileSync('sh', ['-c', 'grep -rlF -- "$1" "$2" || true', 'sh', text, bench.home], {
    encoding: 'utf8',
  });
  bench = await Bench.reopen(bench, { hooks: true, clock: bench.clock });
  return found !== '';
}

describe('0064: text that looks like a secret', () => {
  test.each(CLIENTS)('%s: in a command, it hides no other command from policy', async (client) => {
    const said = await ask(client, ...shellCall(client, `git status '${TOKEN}';id>PWNED;cat\${IFS}.env;' '`));
    expect(said).toContain('call.unreadable');
    expect(await isRecorded(TOKEN)).toBe(false);
  });

  test.each([`${TOKEN}/../.git/hooks/post-commit`, `${TOKEN}/../../../../../../../../etc/shadow`, `src/${TOKEN}`])(
    'in a path, it hides no other path from policy: %s',
    async (path) => {
      expect(await ask('claude-code', 'Write', { file_path: path, content: 'x' })).toContain('call.unreadable');
      expect(await isRecorded(TOKEN)).toBe(false);
    },
  );
});

test('0064: of 1,000 random events with secrets, none is recorded and each decision is about what the client executes', () => {
  const { wrong, ...counts } = answerSecretEvents(7, 1_000, codingRules());
  expect(wrong).toEqual([]);
  expect(Math.min(counts.allowed, counts.denied, counts.unreadable)).toBeGreaterThan(10);
});
