// The hook program as the client starts it, with a real service: its place and its bytes are compared when a session
// begins (0088).

import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sha256 } from '../../../../src/core/contract/hash.js';
import { CLIENTS } from '../../../../src/features/hooks/hook-event.js';
import { Bench } from '../../../fixtures/bench.js';
import type { ClientMachine } from '../../../fixtures/client-machine.js';
import { codingEdit } from '../../../fixtures/coding-policy.js';
import { HookClient, isAllowed } from '../../../fixtures/hooks/hook-client.js';

let bench: Bench;
beforeAll(async () => {
  bench = await Bench.open({ edit: codingEdit, hooks: true });
});
afterAll(() => bench.close());

/** A copy of the program of a client in the project, under its own name. */
function copyToProject({ project }: ClientMachine, program: string): readonly string[] {
  const folder = join(project, 'node_modules/turnpike');
  mkdirSync(folder, { recursive: true });
  const copy = join(folder, program.slice(program.lastIndexOf('/') + 1));
  copyFileSync(program, copy);
  return [process.execPath, copy];
}

async function recordedHook(session: string): Promise<string | undefined> {
  for await (const { root_run_id } of bench.turnpike.ledger.treesAfter(-1))
    for await (const { type, body } of bench.turnpike.ledger.entries(root_run_id))
      if (type === 'run_created' && body.run_kind === 'agent' && body.scope['client_session'] === session)
        return body.scope['client_hook'];
  return undefined;
}

describe.each(CLIENTS)('0088: the hook program of %s', (client) => {
  const session = (name: string): string => `${client}-${name}`;

  test('decides outside of the project, and its hash is recorded with the session', async () => {
    const agent = new HookClient(client, bench.home);
    expect(isAllowed(await agent.shell('git status', session('good')))).toBe(true);
    expect(isAllowed(await agent.shell('rm -rf /', session('good'), 'call-2'))).toBe(false);
    expect(await recordedHook(session('good'))).toBe(sha256(readFileSync(agent.program)));
  });

  test('that was changed denies the sessions that begin then', async () => {
    const agent = new HookClient(client, bench.home);
    const text = readFileSync(agent.program);
    chmodSync(agent.program, 0o600);
    writeFileSync(agent.program, Buffer.concat([text, Buffer.from('// changed\n')]));
    const denied = await agent.shell('git status', session('changed'));
    expect(isAllowed(denied)).toBe(false);
    expect(`${denied.out}${denied.err}`).toContain(`turnpike agents doctor ${client}`);
    writeFileSync(agent.program, text);
    expect(isAllowed(await agent.shell('git status', session('restored')))).toBe(true);
  });

  test('in the project denies its sessions', async () => {
    const { program } = new HookClient(client, bench.home);
    const agent = new HookClient(client, bench.home, (machine) => copyToProject(machine, program));
    const denied = await agent.shell('git status', session('inside'));
    expect(isAllowed(denied)).toBe(false);
    expect(`${denied.out}${denied.err}`).toContain(`turnpike agents doctor ${client}`);
  });
});
